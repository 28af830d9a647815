r"""Between $c=1/\sqrt3$ and 1 the mean participation comes from tokens whose weight is just of order one.

The part of $\mathbb{E}\sum_ip_i^2$ from tokens of one score; 1 is the largest score of a typical prompt. Larger scores
are rarer, with larger squared weights; the product is largest at $2c$. From $c=1/\sqrt3$ on the weight has
order one before, at $(1+c^2)/2c$, and a larger score brings no more. The limit is heuristic.

Alt: Line chart of three hills, from low left to high right. The lowest is a rounded parabola left of a vertical line at
one. The highest has a kink at its top, a little right of that line, named "a token just has a weight of order one",
from where a dashed parabola continues to rise.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from chapters.temperature_and_length.participation_by_score import Parts, capped, limit, uncapped
from chapters.temperature_and_length.style import LOG_LENGTH
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, legend_with

# Relative accuracy of the sum over scores.
QUADRATURE = 1e-9
# Distance of the scores in the table, in numbers of computed scores.
STRIDE = 15


def numbers(parts: Sequence[Parts]) -> Numbers:
    """Return parts and their limits by size and score, and the claims on their sum and on their maximum."""
    groups = [
        {
            "ratio": hill.ratio,
            "score": hill.scores[::STRIDE],
            "exponent": hill.log_part[::STRIDE] / LOG_LENGTH,
            "limit": limit(hill.ratio, hill.scores[::STRIDE]),
            "uncapped": uncapped(hill.ratio, hill.scores[::STRIDE]),
            "top": capped(hill.ratio),
        }
        for hill in parts
    ]
    columns = {
        "ratio": Column("$c = τ/√(2 ln L)$, the size of the scores"),
        "score": Column("Score of a token over $τ√(2 ln L)$"),
        "exponent": Column("ln of the part of $𝔼 Σp²$ per standard deviation of score, over $ln L$", absolute=1e-9),
        "limit": Column("Limit of the exponent for $L → ∞$ [heuristic]", absolute=1e-12),
        "uncapped": Column("The same limit if weights could exceed 1", absolute=1e-12),
        "top": Column("Score at which the limit is largest, over $τ√(2 ln L)$"),
    }
    claim = Claims("temperature", source="derived here", box="rare-prompts")
    _, middle, largest = sorted(parts, key=lambda hill: hill.ratio)
    without_cap = np.exp(LOG_LENGTH * (2 * middle.ratio**2 - 1)) / middle.whole
    claim.equal(
        "parts",
        f"The parts of the mean participation by score add up to the mean participation, for {len(parts)} sizes of "
        f"the scores at $ln L = {LOG_LENGTH:g}$ (measured: the largest relative deviation).",
        max(abs(hill.sum / hill.whole - 1) for hill in parts),
        0.0,
        within=QUADRATURE,
        because="accuracy of the two quadratures",
        rejects=("weights can exceed 1, with the mean $e^{τ²}/L$, at $c = 1/√3$", abs(without_cap - 1)),
    )
    claim.equal(
        "cap",
        f"At $c = {largest.ratio:g}$ the mean participation comes from tokens whose score just suffices for a weight "
        f"of order one: at $ln L = {LOG_LENGTH:g}$ the score with the largest part, over $√(2 ln L)$, is "
        "$(1 + c²)/2c$.",
        largest.top,
        capped(largest.ratio),
        within=5 / (2 * largest.ratio * LOG_LENGTH),
        because="the maximum is rounded over five factors of $e$ in the weight; one is $1/(2c ln L)$ in the score",
        source="heuristic",
        rejects=("weights can exceed 1, and the maximum is at $2c$", 2 * largest.ratio),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per size, its limit, and the limit if weights could exceed 1."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    for ratio, hill, colour in coloured_rows(table, "ratio"):
        axes.plot(hill["score"], hill["exponent"], color=colour, linewidth=2.5)
        axes.plot(hill["score"], hill["limit"], color=ink(), linewidth=1.2, linestyle=":")
        top, height = hill["top"].iloc[0], hill["limit"].max()
        beyond = hill[hill["score"] >= top]
        if beyond["uncapped"].max() > height + 1e-3:
            axes.plot(beyond["score"], beyond["uncapped"], color=colour, linewidth=1.5, linestyle="--")
            end = beyond["score"].iloc[-1], beyond["uncapped"].max()
            label(axes, *end, "if weights could exceed 1", colour, xytext=(-2, 4), ha="right", va="bottom")
        axes.plot(top, height, "o", color=colour, markersize=7)
        name = r"$c=1/\sqrt{3}$" if abs(ratio * np.sqrt(3) - 1) < 1e-3 else f"$c={ratio:g}$"
        arrow = {"arrowstyle": "->", "color": colour}
        if ratio == table["ratio"].min():
            text = "spread of the scores\n$c\\sqrt{2\\,\\ln L}$, " + name
            label(axes, top, height, text, colour, xytext=(-75, 10), ha="right", va="bottom")
        elif ratio == table["ratio"].max():
            label(axes, top, height, name, colour, xytext=(-14, 5), ha="right", va="bottom")
        else:
            text = f"{name}: weight\nof order one here"
            label(axes, top, height, text, colour, xytext=(58, -68), arrowprops=arrow)
    axes.axvline(1, color=ink(), linewidth=1)
    axes.axvspan(1, table["score"].max(), color="C1", alpha=0.1, linewidth=0)
    label(axes, top, height, "a token just\nhas a weight\nof order one", colour, xytext=(60, 14), arrowprops=arrow)
    label(axes, 1, 0.38, "scores in a\ntypical prompt", ink(), ha="right", xytext=(-8, 0), va="top")
    label(axes, 1.25, -0.4, "only in rare prompts", "C1", xytext=(0, 0), fontsize=12)
    axes.set(xlim=(0, table["score"].max()), ylim=(-1.05, 0.4))
    axes.set(xlabel=r"score of a token, in units of $\sqrt{2\,\ln\,L}$ standard deviations")
    axes.set_ylabel("share of the mean participation\nfrom tokens of this score, as a power of $L$")
    lines = {rf"exact, $\ln L={LOG_LENGTH:g}$": legend_line("-", 2.5), "limit of long prompts": legend_line(":", 1.2)}
    legend_with(axes, lines, loc="upper left")
    return figure
