r"""The least risk of one softmax head on long prompts, over that of linear attention, falls to $e$ in high dimension.

The least risk of one softmax head with $A=uI$ divided by the least risk of linear attention, against the dimension $d$.
Grey symbols: minima of the exact risk at the given prompt lengths; those of the longest prompts are on the curve, the
limit $L\to\infty$ in closed form. Dashed: $e$, the limit for large dimensions. For short prompts the ratio is smaller,
but above 1 at every length and dimension searched. The table also has $du^2$ of the best softmax heads.

Alt: A chart against the dimension on a logarithmic axis. A curve falls from 4.2 at dimension one through 3.2 at five
towards a dashed line at e; grey points of the longest prompts lie on it, of shorter prompts below, all above a line at
one for linear attention.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import LONG, BestHead
from chapters.risk_and_parameters.style import power, tokens
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, markers
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
        "dimension": Column("Dimension $d$ of the covariates"),
        "length": Column("Prompt length $L$ at which the best head was searched", "tokens"),
        "ratio": Column("Least risk of one softmax head $A = uI$ divided by that of linear attention, exact"),
        "squared": Column("$d u²$ of this softmax head"),
        "limit": Column("Limit of the ratio for $L → ∞$"),
        "limit_squared": Column("Limit of $d u²$ for $L → ∞$"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _price_claim(longest: list[BestHead]) -> Claim:
    """Compare the ratio at the longest prompts with its limit, for every start of the search."""

    def worst(ratios) -> float:
        return max(abs(ratio / price(head.dimension) - 1) for ratio, head in zip(ratios, longest, strict=True))

    return Claim(
        id="risk-and-parameters-price",
        statement=(
            f"At $L = {power(LONG)}$ the best softmax head $A = uI$, searched from three starts in each of "
            f"{len({head.dimension for head in longest})} dimensions, has the risk of the best linear head times the "
            "price in closed form (largest relative difference)."
        ),
        source="derived here",
        box="price-of-one-head",
        measured=worst([head.ratio for head in longest]),
        expected=0.0,
        tolerance=NEXT_TERM,
        relation="≤",
        reason="corrections to the limit are of order $1/L$ with a factor that grows with the dimension",
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
            f"At $L = {power(LONG)}$ the best softmax heads $A = uI$ have the $u$ that minimises the limit of the risk "
            "over the valley, and $b = 1/u$ (largest relative difference)."
        ),
        source="derived here",
        box="floor-of-the-valley",
        measured=worst([head.tilt for head in longest], [head.gain for head in longest]),
        expected=0.0,
        tolerance=NEXT_TERM,
        relation="≤",
        reason="corrections to the limit are of order $1/L$ with a factor that grows with the dimension",
        alternative=Alternative("the limit of the infinite flow has the least risk", worst(1 / at_limit, at_limit)),
    )


def _large_dimension_claim() -> Claim:
    """Evaluate the price in closed form at d = 10⁵."""
    dimension = 10**5
    return Claim(
        id="risk-and-parameters-price-e",
        statement=(
            "As the dimension grows, the price of one head on long prompts tends to $e$ (value at "
            f"$d = {power(dimension)}$)."
        ),
        source="derived here",
        box="price-in-large-dimensions",
        measured=price(dimension),
        expected=np.e,
        tolerance=NEXT_TERM,
        reason="the next term in $1/d$ is of order 10⁻⁵ at this dimension",
        alternative=Alternative("the price does not change beyond $d = 20$", price(20)),
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
            "$A = uI$ is above its value for a single token, $(d + 2)/(d + 1)$ (least ratio of the two)."
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
    """Draw the price against the dimension: the limit of long prompts, and finite prompts in grey."""
    curve, points = table[table["limit"].notna()], table[table["ratio"].notna()]
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    lengths = sorted(points["length"].unique().tolist())
    for length, alpha, marker in zip(lengths, np.linspace(0.35, 0.8, len(lengths)), markers(len(lengths)), strict=True):
        best = points[points["length"] == length]
        axes.plot(best["dimension"], best["ratio"], marker, color=ink(), alpha=alpha, markersize=8, markeredgewidth=0)
        last = best.sort_values("dimension").iloc[-1]
        limit = np.interp(np.log(last["dimension"]), np.log(curve["dimension"]), curve["limit"])
        if last["ratio"] < 0.9 * limit:
            label(axes, last["dimension"], last["ratio"], tokens(length), ink(), xytext=(9, 0), alpha=0.8)
    axes.plot(curve["dimension"], curve["limit"], color="C0", linewidth=2.6)
    first = curve.sort_values("dimension").iloc[0]
    label(axes, first["dimension"], first["limit"], "long prompts", "C0", xytext=(12, 6), fontsize=12)
    axes.axhline(np.e, color=ink(), linestyle="--", linewidth=1)
    label(axes, curve["dimension"].max(), np.e, "$e$", ink(), xytext=(-4, -12), ha="right", fontsize=13)
    axes.axhline(1, color="C1", linewidth=2)
    label(axes, curve["dimension"].max(), 1, "linear attention", "C1", xytext=(-4, 9), ha="right", fontsize=12)
    axes.set(xscale="log", xlabel="dimension $d$", ylim=(0.8, 4.6), ylabel="softmax risk / linear risk")
    return figure
