r"""On long prompts the sigmoid finds four relevant tokens at the threshold, and softmax little more than one of them.

Excess risk of the best sigmoid and softmax head with $r = 4$ relevant tokens, against the signal strength in units of
the threshold $2\ln(L/r)$. Both fall at the threshold as prompts get longer, the sigmoid to 0 and softmax to $1-1/r$,
the dashed line: it can follow only one of the four tokens.

Details:
All curves are exact quadratures; softmax approaches the dashed line from below. As $L\to\infty$ at a fixed multiple
of $\ln L$ above the threshold, the least risk of softmax, with any factor common to all tokens, tends to $1-1/r$.

Alt: Two families of curves over a horizontal axis from 0 to 2.4. Green curves fall to zero around one, more steeply
for longer prompts. Blue curves fall only to a dashed line at three quarters.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.several_relevant_tokens.settings import BEYOND, FAILING
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

LIMIT = 1.0 - 1.0 / FAILING


def numbers(curves: pd.DataFrame) -> Numbers:
    """Return the curves; claims on what remains of the risk beyond the threshold."""
    columns = {
        "log_length": Column("Logarithm of the prompt length, $ln L$"),
        "ratio": Column("Signal strength over the threshold, $ν/(2 ln(L/r))$"),
        "snr": Column("Signal strength $ν$"),
        "softmax": Column("Least risk of a softmax head", absolute=1e-7),
        "sigmoid": Column("Least risk of a sigmoid head", absolute=1e-8),
    }
    claim = Claims("several-tokens", source="derived here", box="softmax-fails")
    beyond = curves.query("ratio == @BEYOND").sort_values(by="log_length")
    first, last = beyond.iloc[0], beyond.iloc[-1]
    # the two largest of r normal scores are within δ of each other with a probability of order δ, so that the weight of
    # one of them is incomplete with a probability of order 1/slope, which is 1/√(ln L)
    shrinks = np.sqrt(last["log_length"] / first["log_length"]) - 1.0
    claim.equal(
        "long-softmax",
        f"With {FAILING} relevant tokens and a signal of {BEYOND:g} times the threshold the risk of softmax on long "
        f"prompts is near $1 - 1/r$ ($ln L = {last['log_length']:g}$).",
        last["softmax"],
        LIMIT,
        within=abs(last["softmax"] - first["softmax"]) / shrinks,
        because="corrections fall at least like $1/√(ln L)$, so that the error at the longest length is at most this",
        rejects=("softmax stays Bayes-optimal, at most the risk of the sigmoid", last["sigmoid"]),
    )
    claim.at_most(
        "long-sigmoid",
        f"At the same signal the risk of the sigmoid tends to 0 (at $ln L = {last['log_length']:g}$, over that at "
        f"$ln L = {first['log_length']:g}$).",
        last["sigmoid"] / first["sigmoid"],
        0.5,
        because="it falls like the power 1/24 of $L$, and a logarithm, so at least by half if $ln L$ is tripled",
        requires=(last["log_length"] >= 3 * first["log_length"], "it compares lengths whose logarithms are 1 : 3"),
        box="threshold-of-several",
        rejects=("the sigmoid is left with a risk too, like softmax", last["softmax"] / first["softmax"]),
    )
    return Numbers(Table(curves, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw both heads, lighter for shorter prompts."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    lengths = sorted(table["log_length"].unique())
    for (_, rows), shade in zip(table.groupby("log_length"), np.linspace(0.35, 1, len(lengths)), strict=True):
        for head, colour in (("softmax", "C0"), ("sigmoid", "C2")):
            axes.plot(rows["ratio"], rows[head], color=(colour, shade), linewidth=2.0)
    axes.axhline(LIMIT, color=ink(), linestyle="--", linewidth=1.3)
    axes.axvline(1, color=ink(), linestyle=":", linewidth=1.3)
    end = table.iloc[-1]
    label(axes, 1, 1.03, "threshold", ink(), xytext=(4, -8))
    label(axes, end["ratio"], LIMIT, f"$1-1/r$: one of $r={FAILING}$ found", ink(), ha="right", xytext=(0, 9))
    label(axes, end["ratio"], end["softmax"], "best softmax head", "C0", xytext=(8, -8))
    label(axes, end["ratio"], end["sigmoid"], "best sigmoid head", "C2", xytext=(8, 0))
    text = "darker: longer prompts,\n$\\ln L=" + "$, $".join(f"{length:g}" for length in lengths) + "$"
    label(axes, end["ratio"], 0.4, text, ink(), ha="right", xytext=(0, 0))
    axes.set(xlim=(0, end["ratio"]), ylim=(-0.01, 1.03), ylabel="excess risk")
    axes.set_xlabel(r"signal strength over threshold, $\nu/(2\,\ln(L/r))$")
    return figure
