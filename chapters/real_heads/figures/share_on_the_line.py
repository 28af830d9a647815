r"""The less the scores of a head spread, the more of its output is linear; on longer prompts this difference grows.

The horizontal axis is the spread $\hat\tau$ of the scores of a head in units of $\sqrt{2\ln L}$, where softmax freezes
(dashed; dotted: half of it). The vertical axis is the share $R^2$ of the variation of its outputs that the Gaussian
prediction explains. Each faint path is one head on prompts of growing length, with a point at the longest; arrows show
the direction for six heads. Crosses: the same heads at this length on Gaussian tokens with the mean and covariance of
their keys and values.

Alt: Scatter of points falling from the upper left to the lower right, each at the end of a faint path; six paths are
arrows. Crosses fall likewise and are above the points on the left.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.real_heads.linear_shares import Shares
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import ByLength, Control
from chapters.real_heads.style import GAUSSIAN, ROUNDING, TEXT, borders, spread_ticks
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, SHARE_COLUMNS, by_head
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN
from lib.statistics import comparison_quantile

# Number of heads whose path is drawn as an arrow, from the smallest to the largest spread.
ARROWS = 6


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
    return Numbers(Table.of(groups, columns), _claims(shares, lengths=list(heads)))


def _claims(shares: Shares, *, lengths: list[int]) -> Claims:
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
        f"With the heads at $L = {', '.join(map(str, lengths))}$ in one sample, the explained share $R²$ falls more "
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
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one path per head with a point at its end, arrows for some heads, and one cross per head."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    longest = table[table["length"] == table["length"].max()].sort_values("ratio")
    arrows = longest.iloc[np.linspace(0, len(longest) - 1, ARROWS).round().astype(int)]
    shown = set(zip(arrows["layer"], arrows["head"], strict=True))
    for name, path in table.sort_values("length").groupby(["layer", "head"]):
        points = path[["ratio", "share"]].to_numpy()
        axes.plot(*points.T, color=TEXT, linewidth=1, alpha=0.9 if name in shown else 0.3)
        if name in shown:
            look = {"arrowstyle": "-|>", "color": TEXT, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 4}
            axes.annotate("", points[-1], points[-2], arrowprops=look)
    axes.plot(longest["gaussian_ratio"], longest["gaussian"], "x", color=GAUSSIAN, markersize=6)
    axes.plot(longest["ratio"], longest["share"], "o", color=TEXT, markersize=5)
    borders(axes)
    for border, name, side, shift in ((LINEAR, "small spread", "right", -5), (FROZEN, "softmax freezes", "left", 5)):
        axes.annotate(name, (border, 1.015), (shift, 0), textcoords="offset points", ha=side, va="bottom")
    axes.set(xscale="log", xlim=(0.13, 6.5), ylim=(0, 1.02))
    spread_ticks(axes)
    axes.set(xlabel=r"spread of scores, $\hat\tau/\sqrt{2\,\ln L}$", ylabel="explained share, $R^2$")
    marks = {
        "on Gaussian tokens": Line2D([], [], color=GAUSSIAN, marker="x", linestyle=""),
        "on the text, longest prompts": Line2D([], [], color=TEXT, marker="o", linestyle=""),
        "same head, shorter prompts": Line2D([], [], color=TEXT, linewidth=1, alpha=0.3),
    }
    axes.legend(list(marks.values()), list(marks), loc="upper right")
    return figure
