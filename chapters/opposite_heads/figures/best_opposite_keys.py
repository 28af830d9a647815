r"""The best keys of an opposite pair shrink like $1/\sqrt L$, and $\sqrt L$ times the key tends to a known limit.

Points are the best key $\omega_*$ of a pair with keys $\pm\omega$, times $\sqrt L$, solved from the exact risk. The
limit is $\sqrt{12/((d+4)(d+3+\varsigma))}$, where $\varsigma$ is the ratio of the variance of the noise to that of a
coordinate of the task. The vertical axis starts above zero: all points are above their limit.

Alt: Chart with logarithmic prompt length. Points joined by a line fall towards a horizontal dashed line and stay on
it for long prompts. A dotted line runs slightly above the dashed one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.opposite_heads.exact_risks import BestKeys
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# Relative error of a best key, as documented at `best_pair`.
SOLVER_ERROR = 1e-5


def numbers(best: BestKeys) -> Numbers:
    """Return the scaled best keys with their limit; claim the limit, and on which side of it the keys are."""
    frame = pd.DataFrame({"length": best.lengths, "scaled_key": best.keys * np.sqrt(best.lengths)})
    frame = frame.assign(limit=best.limit, noiseless=best.noiseless_limit).sort_values("length", ignore_index=True)
    columns = {
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "scaled_key": Column("Best key of the pair times $√L$", absolute=2 * SOLVER_ERROR),
        "limit": Column("Limit of the scaled key for long prompts"),
        "noiseless": Column("The same limit without label noise"),
    }
    claim = Claims("opposite-heads")
    before, last = frame.iloc[-2], frame.iloc[-1]
    remainder = abs(before["scaled_key"] - best.limit) * (before["length"] / last["length"]) ** 0.5
    claim.equal(
        "best-key",
        f"At $L = {last['length']:,.0f}$ the best key of the pair, times $√L$, is the limit of long prompts.",
        last["scaled_key"],
        best.limit,
        within=remainder + SOLVER_ERROR * best.limit,
        because="the distance at the second longest prompt, decreasing like the root of the length or faster, and the "
        "documented error of the solver",
        source="derived here",
        box="best-opposite-keys",
        rejects=("the noise of the labels has no influence on the limit", best.noiseless_limit),
    )
    claim.at_least(
        "positive-keys",
        f"At {len(frame)} prompt lengths the best key, times $√L$, is not below its limit (measured: the smallest).",
        frame["scaled_key"].min(),
        best.limit,
        within=SOLVER_ERROR * best.limit,
        because="the limit of long prompts, less the documented error of the solver",
        source="measured here",
        comparisons=len(frame),
        rejects=("the smaller the keys, the lower the error, so that the best keys are zero", 0),
    )
    return Numbers(Table(frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the scaled best keys against the length, with both limits."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    limit, noiseless = table[["limit", "noiseless"]].iloc[0]
    axes.set(xscale="log", xlabel="prompt length $L$", ylim=(0.8 * limit, 1.05 * table["scaled_key"].max()))
    axes.set_ylabel(r"best key times root of the length, $\omega_{*}\sqrt{L}$")
    axes.plot(table["length"], table["scaled_key"], color="C0", marker="o", linewidth=2)
    line, end = {"color": ink(), "linewidth": 1.5}, table["length"].max()
    axes.axhline(limit, linestyle="--", **line)
    axes.axhline(noiseless, linestyle=":", **line)
    label(axes, end, limit, r"limit $L\,\to\,\infty$", ink(), xytext=(0, -12), ha="right")
    label(axes, end, noiseless, "the limit without label noise", ink(), xytext=(0, 12), ha="right")
    label(axes, *table[["length", "scaled_key"]].iloc[1], "exact best key", "C0", xytext=(12, 4))
    axes.minorticks_off()
    return figure
