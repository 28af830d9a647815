r"""The least risk of one softmax head, relative to linear attention, falls to the factor $e$ in high dimension.

Left: the least risk of one softmax head with $A=uI$ divided by the least risk of linear attention, against the
dimension $d$. Right: $du^2$ of this softmax head. Large symbols: minima of the exact risk at the given prompt
lengths. Joined dots: the limit $L\to\infty$ in closed form. Dashed: the limit for large dimensions, $e$ on the left
and 1 on the right. For short prompts the ratio is smaller, but above 1 at every length and dimension searched; their
best heads can be large and lie outside the right panel.

Alt: Two charts against the dimension on a logarithmic axis. Left: a curve falls from 4.2 at dimension one through 3.2
at five towards a dashed line at e; points of the longest prompts lie on it, of shorter prompts below. Right: a curve
rises from 0.23 towards a dashed line at one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import LONG, BestHead
from chapters.risk_and_parameters.style import SIZE, power, tokens
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, markers, sequence
from lib.icl import best_in_the_valley
from lib.icl import price_of_one_head as price

# Bound on the relative corrections to the closed limits at the lengths and dimensions where they are compared.
NEXT_TERM = 1e-3


def numbers(heads: list[BestHead]) -> Numbers:
    """Return the table of the best heads and the claims on the price."""
    longest = [head for head in heads if head.length == LONG]
    return Numbers(
        _table(heads), (_price_claim(longest), _tilt_claim(longest), _large_dimension_claim(), _never_claim(heads))
    )


def _table(heads: list[BestHead]) -> Table:
    """Return the limit on a fine grid of dimensions, and the best heads."""
    curve = pd.DataFrame({"dimension": np.unique(np.round(np.geomspace(1, 1000, 60)).astype(int))})
    curve["limit"] = curve["dimension"].map(price)
    curve["limit_squared"] = [d * best_in_the_valley(d)[0] for d in curve["dimension"].tolist()]
    # on short prompts a search may end at scores so large that the risk no longer depends on them
    lowest = {(head.dimension, head.length): head for head in sorted(heads, key=lambda head: head.ratio, reverse=True)}
    points = pd.DataFrame(
        [(d, length, head.ratio, d * head.tilt**2) for (d, length), head in sorted(lowest.items())],
        columns=["dimension", "length", "ratio", "squared"],
    )
    frame = pd.concat([points, curve], ignore_index=True)
    columns = {
        "dimension": Column("Dimension d of the covariates"),
        "length": Column("Prompt length L at which the best head was searched", "tokens"),
        "ratio": Column("Least risk of one softmax head A = uI divided by that of linear attention, exact"),
        "squared": Column("d u² of this softmax head"),
        "limit": Column("Limit of the ratio for L → ∞"),
        "limit_squared": Column("Limit of d u² for L → ∞"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _price_claim(longest: list[BestHead]) -> Claim:
    """Compare the ratio at the longest prompts with its limit, for every start of the search."""

    def worst(ratios) -> float:
        return max(abs(ratio / price(head.dimension) - 1) for ratio, head in zip(ratios, longest, strict=True))

    return Claim(
        id="risk-and-parameters-price",
        statement=(
            f"At L = {power(LONG)} the best softmax head A = uI, searched from three starts in each of "
            f"{len({head.dimension for head in longest})} dimensions, has the risk of the best linear head times "
            "the price in closed form (largest relative difference)."
        ),
        source="derived here",
        box="price-of-one-head",
        measured=worst([head.ratio for head in longest]),
        expected=0.0,
        tolerance=NEXT_TERM,
        relation="≤",
        reason="corrections to the limit are of order 1/L with a factor that grows with the dimension",
        alternative=Alternative("one softmax head has the risk of the best linear head", worst([1.0] * len(longest))),
    )


def _tilt_claim(longest: list[BestHead]) -> Claim:
    """Compare u and b of the same heads with the minimum of the limit over the valley."""

    def worst(tilts, gains) -> float:
        best = np.asarray([best_in_the_valley(head.dimension)[0] ** 0.5 for head in longest])
        return float(np.max(np.abs([tilts / best - 1, gains * best - 1])))

    at_limit = np.asarray([head.dimension**0.25 for head in longest])
    return Claim(
        id="risk-and-parameters-best-head",
        statement=(
            f"At L = {power(LONG)} the best softmax heads A = uI have the u that minimises the limit of the risk over "
            "the valley, and b = 1/u (largest relative difference)."
        ),
        source="derived here",
        box="floor-of-the-valley",
        measured=worst([head.tilt for head in longest], [head.gain for head in longest]),
        expected=0.0,
        tolerance=NEXT_TERM,
        relation="≤",
        reason="corrections to the limit are of order 1/L with a factor that grows with the dimension",
        alternative=Alternative("the limit of the infinite flow has the least risk", worst(1 / at_limit, at_limit)),
    )


def _large_dimension_claim() -> Claim:
    """Evaluate the price in closed form at d = 10⁵."""
    dimension = 10**5
    return Claim(
        id="risk-and-parameters-price-e",
        statement=(
            "As the dimension grows, the price of one head on long prompts tends to e (value at d = "
            f"{power(dimension)})."
        ),
        source="derived here",
        box="price-in-large-dimensions",
        measured=price(dimension),
        expected=np.e,
        tolerance=NEXT_TERM,
        reason="the next term in 1/d is of order 10⁻⁵ at this dimension",
        alternative=Alternative("the price does not change beyond d = 20", price(20)),
    )


def _never_claim(heads: list[BestHead]) -> Claim:
    """Compare the price at every length and dimension with the price for a single token."""

    def least(ratios) -> float:
        single = [(head.dimension + 2) / (head.dimension + 1) for head in heads]
        return min(ratio / one for ratio, one in zip(ratios, single, strict=True))

    return Claim(
        id="risk-and-parameters-never-linear",
        statement=(
            f"At {len({head.length for head in heads})} prompt lengths from {min(head.length for head in heads)} to "
            f"{power(LONG)} and in {len({head.dimension for head in heads})} dimensions, the price of one softmax head "
            "A = uI is above its value for a single token, (d + 2)/(d + 1) (least ratio of the two)."
        ),
        source="measured here",
        box="price-of-one-head",
        measured=least([head.ratio for head in heads]),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        reason="at least the price of a single token",
        alternative=Alternative("the price is 1 at some length", least([1.0] * len(heads))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the price and the best head in one panel each, with the limits for long prompts and high dimension."""
    curve, points = table[table["limit"].notna()], table[table["ratio"].notna()]
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    lengths = sorted(points["length"].unique().tolist())
    drawn = (("ratio", "limit", np.e), ("squared", "limit_squared", 1.0))
    for panel, (column, limit, level) in zip(panels, drawn, strict=True):
        panel.plot(curve["dimension"], curve[limit], color=ink(), linewidth=1.2, marker=".", label=r"$L\to\infty$")
        for length, colour, marker in zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True):
            best = points[points["length"] == length]
            panel.plot(best["dimension"], best[column], marker, color=colour, markersize=7, label=tokens(length))
        panel.axhline(level, color=ink(), linestyle="--", linewidth=1)
        panel.set(xscale="log", xlabel="dimension $d$")
    label(panels[0], curve["dimension"].max(), np.e, "$e$", ink(), xytext=(0, -12), ha="right")
    panels[0].set(ylim=(1, 4.5), ylabel="softmax risk / linear risk", title="the price of one head")
    panels[1].set(ylim=(0, 1.3), ylabel="$d\\,u^2$", title="the best head")
    panels[1].legend(loc="lower right")
    headline(figure, "One softmax head costs a factor that falls to e with the dimension")
    return figure
