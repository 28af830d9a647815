r"""No head that was found avoids the price, and noisy labels do not remove it.

Left: mean square error times $L$ at the ends of searches over all heads for $d=1$, from random starts (points), on
that of the best head $A=uI$ (solid); above them, second minima, whose scores see the label and whose values the
covariate. Dashed: the best linear head. Right: risk above the noise of the best block head, divided by that of the
best linear head and by that of ridge regression, for $L\to\infty$, against the variance of the labels' noise; points
found by search.
Dotted: $e$, below which neither ratio falls.

Alt: Two charts. Left, against length on a logarithmic axis, points lie on a solid curve that rises and levels off at
about eight; a few crosses lie on a higher branch; a dashed line at two lies far below. Right, against noise, one
curve stays nearly constant above a dotted line at e, another falls from large values towards it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.head_searches import NOISY_LENGTH, Found, Noisy
from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.style import SIZE, power
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.icl import best_in_the_valley, least_price, price_of_one_head

# A search ends, and the law of the valley holds, to better than this.
KNOWN = 1e-3


def linear_excess(noise: float) -> float:
    """`lim 2L (R - ½σ²)` of the best linear head."""
    return DIMENSION * (DIMENSION + 1 + noise)


def ridge_excess(noise: float) -> float:
    """The same of ridge regression, which is Bayes'."""
    return DIMENSION * noise


def numbers(found: list[Found], noisy: list[Noisy]) -> Numbers:
    """No head on the line is better than A = uI; with noise the excess is the law's, above e times Bayes'."""
    return Numbers(_table(found, noisy), (_family_claim(found), _bayes_claim(noisy), _bound_claim()))


def _table(found: list[Found], noisy: list[Noisy]) -> Table:
    rows = [("search", *end, *[np.nan] * 3) for end in found]
    grid = np.geomspace(min(at.noise for at in noisy), max(at.noise for at in noisy), 40)
    laws = [(noise, best_in_the_valley(DIMENSION, noise)[1]) for noise in grid]
    for kind, values in (("law", laws), ("noisy", noisy)):
        for noise, excess in values:
            ratios = excess / linear_excess(noise), excess / ridge_excess(noise)
            rows.append((kind, *[np.nan] * 5, noise, *ratios))
    columns = {
        "kind": Column(
            "The end of a search on the line; the law with noisy labels; a search with noisy labels", "name"
        ),
        "length": Column("Tokens in a prompt", "tokens"),
        "scaled_risk": Column("2R·L where the search ended"),
        "sees_labels": Column("Share of the label in the weights of the scores there", absolute=1e-3),
        "block": Column("2R·L of the best A = uI"),
        "linear": Column("2R·L of the best linear head"),
        "noise": Column("Variance of the noise on labels"),
        "over_linear": Column("Excess risk over that of the best linear head"),
        "over_ridge": Column("Excess risk over that of ridge regression"),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _family_claim(found: list[Found]) -> Claim:
    """The least risk found over all heads on the line, against that of A = uI."""

    def gained(risks: dict[int, float]) -> float:
        return max(end.block / risks[end.length] - 1 for end in found)

    least = {length: min(end.scaled_risk for end in found if end.length == length) for length, *_ in found}
    return Claim(
        id="risk-and-parameters-all-heads",
        statement=(
            f"On the line no head found from {sum(end.length == found[0].length for end in found)} random starts over "
            f"all U and V is better than the best A = uI: the largest relative gain, at {len(least)} lengths."
        ),
        source="measured here",
        box="price-of-any-bounded-head",
        measured=gained(least),
        expected=0.0,
        tolerance=KNOWN,
        relation="≤",
        alternative=Alternative(
            "some head is as good as the best linear one", gained({end.length: end.linear for end in found})
        ),
    )


def _bayes_claim(noisy: list[Noisy]) -> Claim:
    """The excess over ridge's, against the law's."""
    law = np.asarray([best_in_the_valley(DIMENSION, at.noise)[1] for at in noisy])
    return Claim(
        id="risk-and-parameters-not-bayes",
        statement=(
            f"With noisy labels the best block head's excess risk at L = {power(NOISY_LENGTH)} is that of the valley's "
            f"law, not ridge regression's: the largest relative distance, at {len(noisy)} variances of the noise."
        ),
        source="derived here",
        box="price-of-any-bounded-head",
        measured=float(np.max(np.abs([at.excess for at in noisy] / law - 1))),
        expected=0.0,
        tolerance=KNOWN,
        relation="≤",
        alternative=Alternative(
            "one softmax head is Bayes",
            float(np.max(np.abs([ridge_excess(at.noise) for at in noisy] / law - 1))),
        ),
    )


def _bound_claim() -> Claim:
    """The price over its bound, at every dimension up to a hundred."""
    dimensions = np.arange(1, 101)
    bounds = least_price(dimensions)
    return Claim(
        id="risk-and-parameters-above-e",
        statement=(
            "The price of one head is above (1 + 2/(d + 1))^{(d + 3)/2}, and this above e: the least ratio of the "
            f"price to the larger of the two, for d from 1 to {dimensions[-1]}."
        ),
        source="derived here",
        box="price-of-any-bounded-head",
        measured=float(np.min([price_of_one_head(int(d)) for d in dimensions] / np.maximum(bounds, np.e))),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("one head costs what a linear head costs", float(np.min(1 / np.maximum(bounds, np.e)))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Ends of searches on the best block head's curve; ratios above e; names at the curves."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    ends = table[table["kind"] == "search"]
    for second, mark in ((False, {"marker": "o", "color": "C0"}), (True, {"marker": "x", "color": "C3"})):
        shown = ends[(ends["sees_labels"] > 0.5) == second]
        says = "scores on labels" if second else "scores on covariates"
        left.plot(shown["length"], shown["scaled_risk"], linestyle="none", markersize=7, label=says, **mark)
    left.plot(ends["length"], ends["block"], color="C0", linewidth=1.5)
    left.plot(ends["length"], ends["linear"], color="C1", linestyle="--", linewidth=1.5)
    last = ends.sort_values("length").iloc[-1]
    said = {"ha": "right", "fontsize": 10}
    label(left, last["length"], last["block"], "best $A=uI$", "C0", xytext=(0, -15), **said)
    label(left, last["length"], last["linear"], "best linear head", "C1", xytext=(0, 9), **said)
    left.set(xscale="log", xlabel="prompt length $L$", ylabel="mean square error times $L$", ylim=(0, None))
    left.set_title("all heads, $d=1$")
    left.legend(loc="upper left", fontsize=10, title="found by search", alignment="left", handletextpad=0.2)
    law, noisy = table[table["kind"] == "law"], table[table["kind"] == "noisy"]
    for column, colour, says, place in (
        ("over_linear", "C1", "over the best linear head's", (0, 10)),
        ("over_ridge", "C2", "over ridge regression's", (14, 4)),
    ):
        right.plot(law["noise"], law[column], color=colour, linewidth=2)
        right.plot(noisy["noise"], noisy[column], "o", color=colour, markersize=6)
        first = law.sort_values("noise").iloc[0]
        label(right, first["noise"], first[column], says, colour, xytext=place, fontsize=10)
    right.axhline(np.e, color=ink(), linestyle=":", linewidth=1.3)
    label(right, law["noise"].max(), np.e, "$e$", ink(), xytext=(0, -9))
    right.set(xscale="log", yscale="log", xlabel=r"noise $\sigma^2$", ylim=(2, None))
    right.set(ylabel="excess risk of softmax, ratio", title="block heads, $d=5$")
    headline(figure, "No head that was found avoids the price, and noise does not remove it")
    return figure
