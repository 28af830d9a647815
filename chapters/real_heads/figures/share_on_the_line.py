r"""The less the scores of a head spread, the more of its output is linear; on longer prompts this difference grows.

Spreads $\hat\tau$ are in units of $\sqrt{2\ln L}$, where softmax freezes. The share $R^2$ is that of the variation of
the outputs that the Gaussian prediction explains. Crosses: the same heads on Gaussian tokens with the mean and
covariance of their keys and values. Arrows: means of shares and medians of spreads, from the shortest to the longest
prompts.

Alt: Scatter of points falling from the upper left to the lower right. Crosses fall likewise and are above the points on
the left. An arrow in the group of small spread points up, and the two others point down.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.linear_shares import Shares
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import ByLength, Control
from chapters.real_heads.style import GAUSSIAN, ROUNDING, TEXT, borders, spread_ticks
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, SHARE_COLUMNS, by_head
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.statistics import comparison_quantile


def numbers(heads: ByLength, controls: Mapping[int, Control], shares: Shares) -> Numbers:
    """Return shares at every length, and the claims on spread and length."""
    groups = []
    for length, statistics in heads.items():
        on_text = {"ratio": statistics.ratio, "share": statistics.share, "share_se": shares.errors[length]}
        on_gaussian = {"gaussian_ratio": controls[length].ratio, "gaussian": controls[length].share}
        groups.append(by_head(**on_text, **on_gaussian).assign(length=length))
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        **HEAD_COLUMNS,
        "ratio": Column("$τ̂/√(2 ln L)$, the spread of the scores in units of freezing", moves_with="share"),
        **SHARE_COLUMNS,
        "gaussian_ratio": Column("$τ̂/√(2 ln L)$ of the queries of the Gaussian prompts", moves_with="gaussian"),
        "gaussian": Column(
            "$R²$ of the same head on Gaussian tokens of the same mean and covariance", absolute=ROUNDING
        ),
    }
    claim = Claims("real-heads", source="measured here")
    ranks, unit, growth = shares.ranks, shares.unit, shares.growth
    claim.at_most(
        "ranks",
        "At $L = 512$ heads of smaller spread $τ̂/√(2 ln L)$ have a larger explained share $R²$ (measured: the "
        "rank correlation of the two over all heads).",
        ranks.value,
        -0.5,
        because="a clear rank correlation; layers in place of spreads have none",
        rejects=("the number of the layer in place of the spread", ranks.alternative),
        std_error=ranks.std_error,
    )
    noise = comparison_quantile(1) * unit.std_error
    claim.at_least(
        "unit",
        f"With the heads at $L = {', '.join(map(str, heads))}$ in one sample, the explained share $R²$ falls more "
        "regularly with $τ̂/√(2 ln L)$ than with $τ̂$ (measured: the rank correlation with $τ̂$ minus that with "
        f"$τ̂/√(2 ln L)$; its standard error is {shares.unit_over_heads:.2g} over heads, and that over prompts is "
        "used here).",
        unit.value,
        noise,
        because="without a difference, chance alone would exceed this value with a probability below 0.1 %",
        rejects=("small scores alone make softmax linear, and $R²$ is a function of $τ̂$", unit.alternative),
        std_error=unit.std_error,
        requires=(
            -unit.alternative >= 2 * noise,
            "the units of these lengths differ too little for this number of prompts",
        ),
    )
    claim.at_least(
        "growth",
        "Heads of small spread become more linear on longer prompts (measured: the mean change of $R²$ from "
        "the shortest prompts to $L = 512$).",
        growth.value,
        comparison_quantile(1) * growth.std_error,
        because="without growth, chance alone would exceed this value with a probability below 0.1 %",
        rejects=("the same change over the frozen heads", growth.alternative),
        std_error=growth.std_error,
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one point and one cross per head, and one arrow per regime, from the shortest to the longest prompts."""
    figure, axes = plt.subplots(figsize=(WIDE, 5.0))
    lengths = table["length"].min(), table["length"].max()
    shortest, longest = (table[table["length"] == length].set_index(["layer", "head"]) for length in lengths)
    axes.plot(longest["gaussian_ratio"], longest["gaussian"], "x", color=GAUSSIAN, markersize=5, alpha=0.6)
    axes.plot(longest["ratio"], longest["share"], "o", color=TEXT, markersize=5, alpha=0.6)
    label(axes, 0.37, 0.93, "same heads on Gaussian tokens", GAUSSIAN, xytext=(10, 4))
    label(axes, 0.55, 0.76, f"one point per head, on {lengths[1]} tokens of the text", TEXT, xytext=(10, 4))
    regimes = np.digitize(longest["ratio"], (LINEAR, FROZEN))
    means = [rows.groupby(regimes).agg({"ratio": "median", "share": "mean"}) for rows in (shortest, longest)]
    look = {"arrowstyle": "-|>", "color": ink(), "linewidth": 3.5, "mutation_scale": 22, "shrinkA": 0, "shrinkB": 0}
    for start, end in zip(*(of_length.to_numpy() for of_length in means), strict=True):
        axes.annotate("", end, start, arrowprops=look, zorder=4)
    places = {0: ("small spread", 0.14, 0.37), 2: ("frozen", 1.18, 0.37)}
    for regime, (name, *place) in places.items():
        short, long = (of_length.loc[regime, "share"] for of_length in means)
        text = f"mean share, {name}:\n{short:.2f} on {lengths[0]} tokens,\n{long:.2f} on {lengths[1]} tokens"
        label(axes, *place, text, ink(), xytext=(0, 0), fontweight="bold")
    borders(axes)
    for border, name, side, shift in ((LINEAR, "small spread", "right", -5), (FROZEN, "softmax freezes", "left", 5)):
        axes.annotate(name, (border, 1.015), (shift, 0), textcoords="offset points", ha=side, va="bottom")
    axes.set(xscale="log", xlim=(0.13, 6.5), ylim=(0, 1.02))
    spread_ticks(axes)
    axes.set(xlabel=r"spread of scores, $\hat\tau/\sqrt{2\,\ln L}$", ylabel="explained share, $R^2$")
    return figure
