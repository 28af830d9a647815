r"""In most heads of small spread, the even part of the output is mostly the plain average of the prompt's values.

The even part is the mean of the outputs at a query and at its negative, for which all scores are negated; outputs are
taken minus the mean value on the other prompts. Left: the share of the even part in the mean square of both outputs.
Right: how much of its mean square centring removes, which subtracts the plain average of the prompt's values. Points:
the heads on the text, with two standard errors over prompts, against the spread of their scores in units of freezing.
Crosses: exact for independent Gaussian tokens with the mean and covariance of each head's keys and values.

Alt: Two panels of points and crosses against the spread. Left, crosses rise from about a tenth to nearly one half, and
most points are between three and five tenths. Right, crosses fall from nine tenths to zero along a curve; points fall
to zero too, most of them later, but some points at small spreads are below the crosses.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.even_comparison import EvenComparison
from chapters.real_heads.even_parts import EvenParts
from chapters.real_heads.style import GAUSSIAN, TEXT, spread_axis
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, by_head
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars


def numbers(parts: EvenParts, comparison: EvenComparison) -> Numbers:
    """Return the even parts of all heads, and the claims on their size and on their plain averages."""
    shown = ("ratio", "share", "gain", "variation", "second_share")
    shown += ("gaussian_ratio", "gaussian_share", "gaussian_gain")
    errors = {f"{name}_se": error for name, error in comparison.errors.items()}
    frame = by_head(**{name: getattr(parts, name) for name in shown}, **errors)
    columns = {
        **HEAD_COLUMNS,
        "ratio": Column("$τ̂/√(2 ln L)$ at $L = 512$"),
        "share": Estimate(
            "Share of the even part in the mean square of the outputs at $q$ and $-q$", std_error="share_se"
        ),
        "gain": Estimate(
            "Part of the mean square of the even part that disappears if the plain average is subtracted",
            std_error="gain_se",
        ),
        "variation": Estimate(
            "Mean square of the plain average, relative to independent tokens", std_error="variation_se"
        ),
        "second_share": Estimate(
            "Part of the mean square of $e - v$̄ that the best multiple of the second-order term explains",
            std_error="second_share_se",
        ),
        "gaussian_ratio": Column("$τ/√(2 ln L)$ for Gaussian tokens with the same mean and covariance"),
        "gaussian_share": Column("The share for these Gaussian tokens, exact"),
        "gaussian_gain": Column("The gain for these Gaussian tokens, exact"),
    }
    return Numbers(Table.of([frame], columns), _claims(comparison))


def _claims(comparison: EvenComparison) -> Claims:
    claim = Claims("real-heads-even", source="measured here")
    gain, share, variation = comparison.gain, comparison.share, comparison.variation
    ranks, second = comparison.ranks, comparison.second
    claim.at_least(
        "average",
        "At $L = 512$, most of the even part of a head of small spread is the plain average of the prompt's "
        "values (measured: the part of its mean square that disappears if the plain average is subtracted, mean "
        "over heads).",
        gain.value,
        0.5,
        because="half of the mean square; a vector that has nothing to do with the even part adds to it",
        rejects=("the plain average of another prompt is subtracted", gain.alternative),
        std_error=gain.std_error,
    )
    claim.at_least(
        "share",
        "In heads of small spread, the even part is a larger share of the output on the text than on Gaussian "
        "tokens of the same moments (measured: the ratio of the mean shares).",
        share.value,
        2,
        because="twice the share; frozen heads have half of their output in the even part on all tokens",
        rejects=("the same ratio over the frozen heads", share.alternative),
        std_error=share.std_error,
    )
    claim.at_least(
        "dependence",
        "The plain average of a head's values varies more from prompt to prompt than for independent tokens of the "
        "same covariance (measured: the ratio of the mean squares, mean over heads of small spread).",
        variation.value,
        2,
        because="twice the variation of independent tokens",
        rejects=("independent tokens, with the constant from the other prompts", variation.alternative),
        std_error=variation.std_error,
    )
    claim.at_most(
        "ranks",
        "At $L = 512$ heads of smaller spread $τ̂/√(2 ln L)$ have a larger part of their even part in the plain "
        "average (measured: the rank correlation of the two over all heads).",
        ranks.value,
        -0.5,
        because="a clear rank correlation; layers in place of spreads do not have it",
        rejects=("the number of the layer in place of the spread", ranks.alternative),
        std_error=ranks.std_error,
    )
    claim.at_least(
        "second",
        "In heads whose scores spread by less than 1, most of the even part minus the plain average is the "
        "second-order term of the expansion in the scores (measured: the part of its mean square that the best "
        "multiple of this term explains, mean over heads).",
        second.value,
        0.5,
        because="half of the mean square; in frozen heads, terms of all orders count",
        rejects=("the same part over the frozen heads", second.alternative),
        std_error=second.std_error,
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw, against the spread, the share of the even part on the left and the gain from centring on the right."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    for axes, name in zip(panels, ("share", "gain"), strict=True):
        look = {"color": GAUSSIAN, "markersize": 6, "label": "on Gaussian tokens", "zorder": 3}
        axes.plot(table["gaussian_ratio"], table[f"gaussian_{name}"], "x", **look)
        look = {"marker": "o", "color": TEXT, "markersize": 4.5, "elinewidth": 1, "label": "on the text"}
        error_bars(axes, table["ratio"], table[name], table[f"{name}_se"], **look)
        spread_axis(axes)
        axes.set(xlim=(0.13, 6.5), ylim=(0, 1), xlabel=r"spread of scores, $\hat\tau/\sqrt{2\,\ln L}$")
    panels[0].set_ylabel("share of the even part in the output")
    panels[1].set_ylabel("part of it that centring removes")
    panels[0].legend(loc="upper right", frameon=True, framealpha=1, edgecolor="none", borderpad=0.1)
    return figure
