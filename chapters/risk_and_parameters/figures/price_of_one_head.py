r"""What one softmax head costs, against the dimension.

Left: least risk of one softmax head over that of linear attention. Right: $du^2$ of the best head $A=uI$. Points:
found by minimising the exact risk at the given lengths. Dots, joined: the limit $L\to\infty$ in closed form. Dashed:
its own limit for large dimensions, $e$ and 1. For short prompts the price is smaller, but above 1 at every length
and dimension searched; their best heads can be large, beyond the right panel.

Alt: Two charts against the dimension on a logarithmic axis. Left: a curve falls from 4.2 at dimension one through
3.2 at five towards a dashed line at e; points of the longest prompts lie on it, of shorter prompts below. Right:
a curve rises from 0.23 towards a dashed line at one.
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

# At the lengths and dimensions where the closed limits are compared, their next terms are below this.
KNOWN = 1e-3


def numbers(heads: list[BestHead]) -> Numbers:
    """The heads found beside the closed limit, and this beside its own limit."""
    longest = [head for head in heads if head.length == LONG]
    return Numbers(
        _table(heads), (_price_claim(longest), _tilt_claim(longest), _large_dimension_claim(), _never_claim(heads))
    )


def _table(heads: list[BestHead]) -> Table:
    """The closed limit on a fine grid of dimensions, and the best heads found."""
    curve = pd.DataFrame({"dimension": np.unique(np.round(np.geomspace(1, 1000, 60)).astype(int))})
    curve["limit"] = curve["dimension"].map(price)
    curve["limit_squared"] = [d * best_in_the_valley(d)[0] for d in curve["dimension"].tolist()]
    # of short prompts a search may also end where scores are so large that the risk no longer changes with them
    lowest = {(head.dimension, head.length): head for head in sorted(heads, key=lambda head: head.ratio, reverse=True)}
    points = pd.DataFrame(
        [(d, length, head.ratio, d * head.tilt**2) for (d, length), head in sorted(lowest.items())],
        columns=["dimension", "length", "ratio", "squared"],
    )
    frame = pd.concat([points, curve], ignore_index=True)
    columns = {
        "dimension": Column("Dimension d of the covariates"),
        "length": Column("Tokens in a prompt, where the best head was searched", "tokens"),
        "ratio": Column("Least risk of a softmax head over that of linear attention, exact"),
        "squared": Column("d u² of that head, A = uI"),
        "limit": Column("The limit of the ratio for L → ∞"),
        "limit_squared": Column("The limit of d u²"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _price_claim(longest: list[BestHead]) -> Claim:
    """The ratio at the longest prompts against its limit, from every start."""

    def worst(ratios) -> float:
        return max(abs(ratio / price(head.dimension) - 1) for ratio, head in zip(ratios, longest, strict=True))

    return Claim(
        id="risk-and-parameters-price",
        statement=(
            f"At L = {power(LONG)} the best softmax head, found from three starts in each of "
            f"{len({head.dimension for head in longest})} dimensions, has the risk of the best linear head times "
            "the closed limit: the largest relative distance."
        ),
        source="derived here",
        box="price-of-one-head",
        measured=worst([head.ratio for head in longest]),
        expected=0.0,
        tolerance=KNOWN,
        relation="≤",
        alternative=Alternative("one softmax head costs what a linear head costs", worst([1.0] * len(longest))),
    )


def _tilt_claim(longest: list[BestHead]) -> Claim:
    """u and b of the same heads."""

    def worst(tilts, gains) -> float:
        best = np.asarray([best_in_the_valley(head.dimension)[0] ** 0.5 for head in longest])
        return float(np.max(np.abs([tilts / best - 1, gains * best - 1])))

    at_limit = np.asarray([head.dimension**0.25 for head in longest])
    return Claim(
        id="risk-and-parameters-best-head",
        statement=(
            f"At L = {power(LONG)} these heads have the u that minimises the law of the valley, and b = 1/u: the "
            "largest relative distance."
        ),
        source="derived here",
        box="floor-of-the-valley",
        measured=worst([head.tilt for head in longest], [head.gain for head in longest]),
        expected=0.0,
        tolerance=KNOWN,
        relation="≤",
        alternative=Alternative("the limit of the infinite flow is best", worst(1 / at_limit, at_limit)),
    )


def _large_dimension_claim() -> Claim:
    """The closed limit for d = 10⁵."""
    dimension = 10**5
    return Claim(
        id="risk-and-parameters-price-e",
        statement=f"The limit of the price tends to e as the dimension grows: its value at d = {power(dimension)}.",
        source="derived here",
        box="price-in-large-dimensions",
        measured=price(dimension),
        expected=np.e,
        tolerance=KNOWN,
        alternative=Alternative("it stays what it is at d = 20", price(20)),
    )


def _never_claim(heads: list[BestHead]) -> Claim:
    """The price at every length and dimension, against that of a single token."""

    def least(ratios) -> float:
        single = [(head.dimension + 2) / (head.dimension + 1) for head in heads]
        return min(ratio / one for ratio, one in zip(ratios, single, strict=True))

    return Claim(
        id="risk-and-parameters-never-linear",
        statement=(
            f"No A = uI is as good as the best linear head, at {len({head.length for head in heads})} lengths from "
            f"{min(head.length for head in heads)} to {power(LONG)} and {len({head.dimension for head in heads})} "
            "dimensions: the price is above (d + 2)/(d + 1), what it is for a single token; the least ratio of the two."
        ),
        source="measured here",
        box="price-of-one-head",
        measured=least([head.ratio for head in heads]),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("somewhere the price is 1", least([1.0] * len(heads))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """The price and the head that pays it, a panel each: points on the limit, and the limit's own limit."""
    curve, points = table[table["limit"].notna()], table[table["ratio"].notna()]
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    lengths = sorted(points["length"].unique().tolist())
    drawn = (("ratio", "limit", np.e), ("squared", "limit_squared", 1.0))
    for panel, (column, limit, level) in zip(panels, drawn, strict=True):
        panel.plot(curve["dimension"], curve[limit], color=ink(), linewidth=1.2, marker=".", label=r"$L\to\infty$")
        for length, colour, marker in zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True):
            found = points[points["length"] == length]
            panel.plot(found["dimension"], found[column], marker, color=colour, markersize=7, label=tokens(length))
        panel.axhline(level, color=ink(), linestyle="--", linewidth=1)
        panel.set(xscale="log", xlabel="dimension $d$")
    label(panels[0], curve["dimension"].max(), np.e, "$e$", ink(), xytext=(0, -12), ha="right")
    panels[0].set(ylim=(1, 4.5), ylabel="softmax risk / linear risk", title="the price of one head")
    panels[1].set(ylim=(0, 1.3), ylabel="$d\\,u^2$", title="the head that pays it")
    panels[1].legend(loc="lower right")
    headline(figure, "One softmax head costs a factor that falls to e with the dimension")
    return figure
