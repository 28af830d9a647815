r"""Softmax puts most of its weight on the relevant token of this prompt, and a linear head spreads its weight.

The figure shows one prompt of ten tokens from the spiked model at the signal strength $\nu=9$, with one column per
token. Upper row: the scores $\chi^\star$. The score of the relevant token (shaded) has the mean $\sqrt\nu$ instead of
0; the heads do not know which token it is. Middle row: the weights of the best softmax head and of the best linear
head. Lower row: the values $z^\star$. The dashed line is the label, which is the value of the relevant token; the solid
lines are the outputs of the two heads. The prompt is typical: the squared errors of both heads are near the medians of
many simulated prompts.

Alt: Three rows of bars over the same tokens. In the upper row, of scores, the relevant token is among the largest. In
the middle row softmax has nearly all its weight on the relevant token, and linear attention has weights of both signs
on many tokens. The lower row shows values with three horizontal lines: the output of softmax is near the label, that
of linear attention is not.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters.softmax_advantage.parameters import SHOWN_HEADS, SHOWN_SNR
from chapters.softmax_advantage.typical_prompt import DIMENSION, LENGTH, PROMPTS, Prompts
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink
from lib.statistics import standard_error


def numbers(prompts: Prompts) -> Numbers:
    """Return the tokens of one prompt, and claims about all: the error of softmax, and how often it finds the token."""
    shown = prompts.median
    tokens = {
        "token": np.arange(1, LENGTH + 1),
        "hidden": (np.arange(LENGTH) == prompts.hidden[shown]).astype(int),
        "score": prompts.scores[shown],
        "value": prompts.values[shown],
        **{head: prompts.weights[head][shown] for head in SHOWN_HEADS},
    }
    columns = {
        "token": Column("Position of the token in the prompt"),
        "hidden": Column("1 for the relevant token, whose value is the label, else 0"),
        "score": Column("Its score $χ*$", absolute=1e-9),
        "value": Column("Its value $z*$", absolute=1e-9),
        "softmax": Column("Its weight in the best softmax head", absolute=1e-9),
        "linear": Column("Its weight in the best linear head", absolute=1e-9),
    }
    claim = Claims("softmax-advantage", source="derived here", box="d26-bayes")
    errors = prompts.squared_errors("softmax")
    claim.equal(
        "one-prompt",
        f"The mean square error of the best softmax head on {PROMPTS:,} prompts of {LENGTH} tokens in {DIMENSION} "
        f"dimensions, in the spiked model at $ν = {SHOWN_SNR:g}$, is the Bayes risk.",
        errors.mean(),
        prompts.bayes,
        std_error=standard_error(errors),
        rejects=("the error of the best linear head on the same prompts", prompts.squared_errors("linear").mean()),
    )
    found = prompts.found("softmax")
    claim.at_least(
        "one-prompt-found",
        f"On most prompts of {LENGTH} tokens in the spiked model at $ν = {SHOWN_SNR:g}$, the relevant token has more "
        "than half of the weight of the best softmax head (fraction of the prompts).",
        found.mean(),
        0.5,
        because="more than half, as stated",
        count=(found.sum(), len(found)),
        rejects=("the best linear head, by the absolute values of its weights", prompts.found("linear").mean()),
    )
    return Numbers(Table.of([tokens], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw scores, weights and values, one column per token."""
    figure, (scores, weights, values) = plt.subplots(3, 1, figsize=(WIDE, 5.6), sharex=True)
    hidden, tokens = table[table["hidden"] == 1].iloc[0], table["token"]
    for axes in (scores, weights, values):
        axes.axvspan(hidden["token"] - 0.45, hidden["token"] + 0.45, color=ink(), alpha=0.1, linewidth=0)
        axes.axhline(0, color=ink(), linewidth=0.8)
        axes.grid(False, axis="x")
    scores.bar(tokens, table["score"], width=0.5, color=ink(), alpha=0.6, linewidth=0)
    above = scores.get_xaxis_transform()
    scores.text(hidden["token"], 1, "the relevant token", transform=above, ha="center", va="bottom")
    values.bar(tokens, table["value"], width=0.5, color=ink(), alpha=0.6, linewidth=0)
    lines = [(hidden["value"], "label", ink(), "--")]
    for head, colour, side in zip(SHOWN_HEADS, ("C0", "C1"), (-0.2, 0.2), strict=True):
        weights.bar(tokens + side, table[head], width=0.36, color=colour, linewidth=0)
        lines.append((float((table[head] * table["value"]).sum()), f"{head} output", colour, "-"))
        _label_right(weights, 0.85 if head == "softmax" else 0.55, head, colour)
    lines = sorted(lines)
    for value, _, colour, dashes in lines:
        values.axhline(value, color=colour, linewidth=2, linestyle=dashes)
    heights = _apart([value for value, *_ in lines], float(np.ptp(values.get_ylim())) / 7)
    for height, (value, name, colour, _) in zip(heights, lines, strict=True):
        _label_right(values, height, name, colour, in_data=True)
        edge = {"transform": values.get_yaxis_transform(), "clip_on": False, "linewidth": 1}
        values.plot([1.0, 1.015], [value, height], color=colour, **edge)
    scores.set(ylabel=r"score $\chi^{\star}$")
    weights.set(ylabel="weight")
    values.set(ylabel=r"value $z^{\star}$", xlabel="token", xticks=tokens, xlim=(0.45, tokens.max() + 0.55))
    scores.set_title(rf"$\nu = {SHOWN_SNR:g}$", loc="right", fontsize=11)
    return figure


def _apart(values: list[float], gap: float) -> Float[np.ndarray, " n"]:
    """Return sorted values moved apart until neighbours differ by at least `gap`."""
    moved = np.asarray(values, float)
    for _ in range(100):
        short = np.maximum(gap - np.diff(moved), 0.0) / 2
        moved[:-1] -= short
        moved[1:] += short
    return moved


def _label_right(axes: Axes, height: float, name: str, colour: str, *, in_data: bool = False) -> None:
    """Write a name to the right of the axes, at a height in units of the axes or of the data."""
    coordinates = ("axes fraction", "data" if in_data else "axes fraction")
    look = {"xytext": (12, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(name, (1, height), xycoords=coordinates, color=colour, **look)
