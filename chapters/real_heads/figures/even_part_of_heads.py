r"""In most heads of small spread, the even part of the output is mostly the plain average of the prompt's values.

The even part is the mean of the outputs at a query and its negative, minus the mean value on other prompts. Left: the
part of its mean square that disappears without the plain average. Right: its share in the mean square of both outputs.
Bars: two standard errors over prompts. Crosses: exact for Gaussian tokens with each head's moments.

Alt: Two panels of points and crosses against the spread. Left, most points at small spread are above a line at one
half, and points fall to zero at larger spreads; crosses fall to zero earlier, along a curve. Right, crosses rise from
about a tenth to nearly one half, and most points are between three and five tenths.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.even_comparison import EvenComparison
from chapters.real_heads.even_parts import EvenParts
from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.style import GAUSSIAN, TEXT, spread_axis
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, by_head
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label


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
    """Draw the part of the plain average on the left and the share of the even part on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1.4, 1.0))
    for axes, name in ((left, "gain"), (right, "share")):
        axes.plot(table["gaussian_ratio"], table[f"gaussian_{name}"], "x", color=GAUSSIAN, markersize=5, alpha=0.7)
        look = {"marker": "o", "color": TEXT, "markersize": 4.5, "elinewidth": 1}
        error_bars(axes, table["ratio"], table[name], table[f"{name}_se"], **look)
        spread_axis(axes)
        axes.set(xlim=(0.13, 6.5), ylim=(0, 1), xlabel=r"spread of scores, $\hat\tau/\sqrt{2\,\ln L}$")
    left.axhline(0.5, color=ink(), linewidth=1.5)
    left.set_ylabel("part of the even part that is the plain average")
    right.set_ylabel("share of the even part in the output")
    small = table[table["ratio"] < LINEAR]
    text = f"mostly the average:\n{(small['gain'] > 0.5).sum()} of {len(small)} heads\nof small spread"
    label(left, 1.1, 0.75, text, TEXT, xytext=(0, 0))
    label(left, 0.14, 0.2, "on Gaussian\ntokens", GAUSSIAN, xytext=(0, 0))
    label(right, 1.3, 0.62, "heads on\nthe text", TEXT, xytext=(0, 0))
    label(right, 1.1, 0.15, "on Gaussian\ntokens", GAUSSIAN, xytext=(0, 0))
    return figure
