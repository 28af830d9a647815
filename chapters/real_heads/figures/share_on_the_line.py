r"""How much of a head's output is linear: more on longer prompts, where scores spread little, and less where they do.

Across: the spread $\hat\tau$ of a head's scores in units of $\sqrt{2\ln L}$, where softmax freezes (dashed; dotted:
half of it). Up: the share $R^2$ of the variation of its outputs that the Gaussian prediction explains. A path is one
head on prompts of growing length; the point at its end is the longest. Crosses: the same head at that length on
Gaussian tokens with the mean and covariance of its own keys and values.

Alt: Scatter of points falling from the upper left to the lower right, each with a tail. Tails on the left mostly rise
towards their point, tails on the right fall. Crosses fall likewise and lie above the points on the left.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Bool, PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import spearmanr

from chapters.real_heads.encoder import LAYERS
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import ByLength, Control, Heads, HeadStatistics, Measured, bootstrap
from chapters.real_heads.style import GAUSSIAN, ROUNDING, SIZE, TEXT, borders
from chapters.real_heads.tracked_tables import names_of_heads
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline
from lib.statistics import comparison_quantile


@dataclass(frozen=True)
class Shares:
    """R² of every head at every length with its error, and what it does with spread and length.

    `ranks` is the rank correlation with τ̂/√(2 ln L), `other` with the number of the layer. `growth` is the mean change
    of heads in the linear regime from the shortest to the longest prompts, `other` that of frozen heads.
    """

    errors: dict[int, Heads]
    ranks: Measured
    growth: Measured
    growing: int


def compare_shares(heads: ByLength, *, key: PRNGKeyArray) -> Shares:
    """The explained shares at every length."""
    shortest, longest = heads[min(heads)], heads[max(heads)]
    linear, frozen = longest.ratio < LINEAR, longest.ratio >= FROZEN
    layers = np.repeat(np.arange(LAYERS), linear.shape[1])

    def ranks(these: HeadStatistics) -> float:
        return float(spearmanr(these.ratio.ravel(), these.share.ravel()).statistic)

    def growth(chosen: Bool[np.ndarray, "layers heads"]):
        return lambda short, long: float(np.mean((long.share - short.share)[chosen]))

    return Shares(
        errors={length: bootstrap(lambda these: these.share, found, key=key) for length, found in heads.items()},
        ranks=Measured(
            ranks(longest),
            float(bootstrap(ranks, longest, key=key)),
            float(spearmanr(layers, longest.share.ravel()).statistic),
        ),
        growth=Measured(
            growth(linear)(shortest, longest),
            float(bootstrap(growth(linear), shortest, longest, key=key)),
            growth(frozen)(shortest, longest),
        ),
        growing=int(np.sum((longest.share > shortest.share)[linear])),
    )


def numbers(heads: ByLength, controls: Mapping[int, Control], shares: Shares) -> Numbers:
    """Shares at every length; they follow the spread, and grow where it is small."""
    return Numbers(_table(heads, controls, shares), (_rank_claim(shares), _growth_claim(shares)))


def _table(heads: ByLength, controls: Mapping[int, Control], shares: Shares) -> Table:
    """A row a length and head."""
    parts = [
        pd.DataFrame(
            {
                "length": length,
                **names_of_heads(),
                "ratio": these.ratio.ravel(),
                "share": these.share.ravel(),
                "share_se": shares.errors[length].ravel(),
                "gaussian_ratio": controls[length].ratio.ravel(),
                "gaussian": controls[length].share.ravel(),
            }
        )
        for length, these in heads.items()
    ]
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "layer": Column("Layer, from 0"),
        "head": Column("Head of the layer, from 0"),
        "ratio": Column("τ̂/√(2 ln L): spread of the scores in units of freezing", moves_with="share"),
        "share": Column(
            "R²: share of the outputs' variation that the Gaussian prediction explains", std_error="share_se"
        ),
        "share_se": Column("Its standard error over prompts", moves_with="share"),
        "gaussian_ratio": Column(
            "τ̂/√(2 ln L) of the queries that are asked in Gaussian prompts", moves_with="gaussian"
        ),
        "gaussian": Column("R² of the same head on Gaussian tokens of the same mean and covariance", absolute=ROUNDING),
    }
    return Table(pd.concat(parts, ignore_index=True)[list(columns)], columns)


def _rank_claim(shares: Shares) -> Claim:
    return Claim(
        id="real-heads-ranks",
        statement=(
            "At L = 512 the spread τ̂/√(2 ln L) orders the heads by their explained share: the rank correlation of "
            "the two, which is to be below one half with a minus."
        ),
        source="measured here",
        measured=shares.ranks.value,
        expected=-0.5,
        tolerance=0.0,
        std_error=shares.ranks.std_error,
        relation="≤",
        alternative=Alternative("the number of the layer in place of the spread", shares.ranks.other),
    )


def _growth_claim(shares: Shares) -> Claim:
    return Claim(
        id="real-heads-growth",
        statement=(
            "Heads in the linear regime become more linear on longer prompts: the mean change of their explained "
            "share from the shortest prompts to L = 512."
        ),
        source="measured here",
        measured=shares.growth.value,
        # what no growth reaches by chance, as prompts go
        expected=comparison_quantile(1) * shares.growth.std_error,
        tolerance=0.0,
        std_error=shares.growth.std_error,
        relation="≥",
        alternative=Alternative("the same for the frozen heads", shares.growth.other),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A path a head, a point at its end, a cross for Gaussian tokens."""
    figure, axes = plt.subplots(figsize=SIZE)
    longest = table[table["length"] == table["length"].max()]
    for _, path in table.sort_values("length").groupby(["layer", "head"]):
        axes.plot(path["ratio"], path["share"], color=TEXT, linewidth=1, alpha=0.3)
    axes.plot(longest["gaussian_ratio"], longest["gaussian"], "x", color=GAUSSIAN, markersize=6)
    axes.plot(longest["ratio"], longest["share"], "o", color=TEXT, markersize=6)
    borders(axes)
    for border, says in ((LINEAR, "linear"), (FROZEN, "softmax freezes")):
        side = "right" if border == LINEAR else "left"
        axes.annotate(
            says, (border, 1.015), (-5 if side == "right" else 5, 0), textcoords="offset points", ha=side, va="bottom"
        )
    axes.set(xscale="log", xlim=(0.13, 6.5), ylim=(0, 1.02))
    ticks = np.asarray([0.2, 0.5, 1, 2, 5])
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel=r"spread of scores, $\hat\tau/\sqrt{2\,\ln L}$", ylabel="explained share, $R^2$")
    marks = {
        "on Gaussian tokens": Line2D([], [], color=GAUSSIAN, marker="x", linestyle=""),
        "on the text, longest prompts": Line2D([], [], color=TEXT, marker="o", linestyle=""),
        "same head, shorter prompts": Line2D([], [], color=TEXT, linewidth=1, alpha=0.5),
    }
    axes.legend(list(marks.values()), list(marks), loc="upper right")
    headline(figure, "The more a head's scores spread, the less of its output is linear")
    return figure
