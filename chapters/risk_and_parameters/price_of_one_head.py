r"""What one softmax head costs, against the dimension.

Left: least risk of one softmax head over that of linear attention. Right: $du^2$ of the best head $A=uI$. Points:
found by minimising the exact risk at the given lengths. Solid: the limit $L\to\infty$ in closed form. Dashed: its
own limit for large dimensions, $e$ and 1. For short prompts the price is smaller.

Alt: Two charts against the dimension on a logarithmic axis. Left: a curve falls from 4.2 at dimension one through
3.2 at five towards a dashed line at e; points of the longest prompts lie on it, of shorter prompts below. Right:
a curve rises from 0.23 towards a dashed line at one.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.heads import Head, best_heads
from chapters.risk_and_parameters.marks import SIZE, tokens
from chapters.risk_and_parameters.valley import best_in_the_valley
from chapters.risk_and_parameters.words import power
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence

# Where the price of one head is compared with its limit.
LONG = 10**8
MARKERS = ("o", "s", "^", "D", "v", "P")


def search(dimensions: Iterable[int], lengths: Iterable[int]) -> list[Head]:
    """The best head from each start, in each dimension, at each length and at `LONG`."""
    return [
        found
        for dimension in sorted(set(dimensions))
        for length in sorted({*lengths, LONG})
        for found in best_heads(dimension, length)
    ]


def numbers(heads: list[Head]) -> Numbers:
    """The heads found beside the closed limit, and this beside its own limit."""
    return Numbers(_table(heads), (_price_claim(heads), _tilt_claim(heads), _large_dimension_claim()))


def _table(heads: list[Head]) -> Table:
    """The closed limit on a fine grid of dimensions, and the best heads found."""
    dimensions = np.unique(np.round(np.geomspace(1, 1000, 60)).astype(int))
    limits = np.array([best_in_the_valley(dimension) for dimension in dimensions.tolist()])
    curve = pd.DataFrame(
        {
            "dimension": dimensions,
            "limit": limits[:, 1] / (dimensions * (dimensions + 1)),
            "limit_squared": dimensions * limits[:, 0],
        }
    )
    firsts = {(head.dimension, head.length): head for head in reversed(heads)}
    points = pd.DataFrame(
        [
            {
                "dimension": head.dimension,
                "length": head.length,
                "ratio": head.ratio,
                "squared": head.dimension * head.tilt**2,
            }
            for _, head in sorted(firsts.items())
        ]
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


def _price_claim(heads: list[Head]) -> Claim:
    """The ratio at the longest prompts against its limit, from every start."""
    longest = [head for head in heads if head.length == LONG]

    def worst(ratios) -> float:
        limits = [best_in_the_valley(h.dimension)[1] / (h.dimension * (h.dimension + 1)) for h in longest]
        return max(abs(ratio / limit - 1) for ratio, limit in zip(ratios, limits, strict=True))

    return Claim(
        id="risk-and-parameters-price",
        statement=(
            f"At L = {power(LONG)} the best softmax head, found from three starts in each of "
            f"{len({head.dimension for head in longest})} dimensions, has the risk of the best linear head times "
            "the closed limit: the largest relative distance."
        ),
        source="derived here",
        measured=worst([head.ratio for head in longest]),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("one softmax head costs what a linear head costs", worst([1.0] * len(longest))),
    )


def _tilt_claim(heads: list[Head]) -> Claim:
    """u and b of the same heads."""
    longest = [head for head in heads if head.length == LONG]

    def worst(points) -> float:
        limits = [best_in_the_valley(head.dimension)[0] ** 0.5 for head in longest]
        return max(
            max(abs(tilt / limit - 1), abs(gain * limit - 1))
            for (tilt, gain), limit in zip(points, limits, strict=True)
        )

    at_limit = [(head.dimension**-0.25, head.dimension**0.25) for head in longest]
    return Claim(
        id="risk-and-parameters-best-head",
        statement=(
            f"At L = {power(LONG)} these heads have the u that minimises the law of the valley, and b = 1/u: the "
            "largest relative distance."
        ),
        source="derived here",
        measured=worst([(head.tilt, head.gain) for head in longest]),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("the limit of the infinite flow is best", worst(at_limit)),
    )


def _large_dimension_claim() -> Claim:
    """The closed limit for d = 10⁵."""
    dimension = 10**5
    return Claim(
        id="risk-and-parameters-price-e",
        statement=f"The limit of the price tends to e as the dimension grows: its value at d = {power(dimension)}.",
        source="derived here",
        measured=best_in_the_valley(dimension)[1] / (dimension * (dimension + 1.0)),
        expected=np.e,
        tolerance=1e-3,
        alternative=Alternative("it stays what it is at d = 20", best_in_the_valley(20)[1] / (20 * 21)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """The price and the head that pays it, a panel each: points on the limit, and the limit's own limit."""
    frame = table
    curve, points = frame[frame["limit"].notna()], frame[frame["ratio"].notna()]
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    lengths = sorted(points["length"].unique().tolist())
    for panel, limit, column, level in zip(
        panels, ("limit", "limit_squared"), ("ratio", "squared"), (np.e, 1.0), strict=True
    ):
        panel.plot(curve["dimension"], curve[limit], color=ink(), linewidth=2, label=r"$L\to\infty$")
        for length, colour, marker in zip(lengths, sequence(len(lengths)), MARKERS, strict=False):
            found = points[points["length"] == length]
            panel.plot(found["dimension"], found[column], marker, color=colour, markersize=7, label=tokens(length))
        panel.axhline(level, color=ink(), linestyle="--", linewidth=1)
        panel.set(xscale="log", xlabel="dimension $d$")
    panels[0].annotate("$e$", (curve["dimension"].max(), np.e), xytext=(2, 5), textcoords="offset points", color=ink())
    panels[0].set(ylim=(1, 4.5), ylabel="softmax risk / linear risk", title="the price of one head")
    panels[1].set(ylim=(0, None), ylabel="$d\\,u^2$", title="the head that pays it")
    panels[1].legend(loc="lower right")
    return figure
