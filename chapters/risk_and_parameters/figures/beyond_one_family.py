r"""Neither a search over all heads in one dimension nor noise on the labels avoids the price of one softmax head.

Left: mean square error times $L$ at the ends of searches over all heads for $d=1$ from random starts. Most ends
(points) lie on the best head $A=uI$ (solid); the others (crosses) are at a second minimum, where scores depend on the
label and values on the covariate. Dashed: the best linear head. Right: excess risk of the best head $A=uI$ divided by
that of the best linear head and by that of ridge regression, for $L\to\infty$, against the variance of the label
noise; the points were found by search. Dotted: $e$, a lower bound of both ratios.

Alt: Two charts. Left, against length on a logarithmic axis, points lie on a solid curve that rises and levels off at
about eight; crosses, at the lengths that have any, lie above it; a dashed line at two lies far below. Right, against
noise, one curve stays nearly constant above a dotted line at e, another falls from large values towards it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.head_searches import NOISY_LENGTH, LineSearch, NoisyBest
from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.style import power
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.icl import best_in_the_valley, price_of_one_head

# Bound on the relative error of a search and on the relative correction to the limit at the compared length.
SEARCH_ERROR = 1e-3


def linear_excess(noise: float) -> float:
    """Return `lim 2L (R - ½σ²)` of the best linear head."""
    return DIMENSION * (DIMENSION + 1 + noise)


def ridge_excess(noise: float) -> float:
    """Return `lim 2L (R - ½σ²)` of ridge regression, the Bayes predictor."""
    return DIMENSION * noise


def numbers(searches: list[LineSearch], noisy: list[NoisyBest]) -> Numbers:
    """Return the table of the searches and the claims that no head avoids the price."""
    return Numbers(_table(searches, noisy), (_family_claim(searches), _bayes_claim(noisy), _bound_claim()))


def _table(searches: list[LineSearch], noisy: list[NoisyBest]) -> Table:
    rows = [("search", *end, *[np.nan] * 3) for end in searches]
    grid = np.geomspace(min(at.noise for at in noisy), max(at.noise for at in noisy), 40)
    limits = [(noise, best_in_the_valley(DIMENSION, noise)[1]) for noise in grid]
    for kind, values in (("law", limits), ("noisy", noisy)):
        for noise, excess in values:
            ratios = excess / linear_excess(noise), excess / ridge_excess(noise)
            rows.append((kind, *[np.nan] * 5, noise, *ratios))
    columns = {
        "kind": Column(
            "search: end of a search for $d = 1$; law: limit with noisy labels; noisy: search with noisy labels", "name"
        ),
        "length": Column("Prompt length $L$", "tokens"),
        "scaled_risk": Column("$2R·L$ at the end of the search"),
        "sees_labels": Column("Weight of the label in the scores there, as a fraction", absolute=1e-3),
        "block": Column("$2R·L$ of the best $A = uI$"),
        "linear": Column("$2R·L$ of the best linear head"),
        "noise": Column("Variance of the label noise"),
        "over_linear": Column("Excess risk divided by that of the best linear head"),
        "over_ridge": Column("Excess risk divided by that of ridge regression"),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _family_claim(searches: list[LineSearch]) -> Claim:
    """Compare the least risk over all heads for d = 1 with that of A = uI."""

    def gain(risks: dict[int, float]) -> float:
        return max(end.block / risks[end.length] - 1 for end in searches)

    least = {length: min(end.scaled_risk for end in searches if end.length == length) for length, *_ in searches}
    starts = sum(end.length == searches[0].length for end in searches)
    return Claim(
        id="risk-and-parameters-all-heads",
        statement=(
            f"For $d = 1$, no search over all heads $(U, V)$ from {starts} random starts ends at a smaller risk than "
            f"the best head $A = uI$ (largest relative gain over {len(least)} lengths)."
        ),
        source="measured here",
        box="price-of-any-bounded-head",
        measured=gain(least),
        expected=0.0,
        tolerance=SEARCH_ERROR,
        relation="≤",
        reason="accuracy of the searches",
        alternative=Alternative(
            "some softmax head has the risk of the best linear head",
            gain({end.length: end.linear for end in searches}),
        ),
    )


def _bayes_claim(noisy: list[NoisyBest]) -> Claim:
    """Compare the excess risk with its limit, and with ridge regression."""
    limits = np.asarray([best_in_the_valley(DIMENSION, at.noise)[1] for at in noisy])
    return Claim(
        id="risk-and-parameters-not-bayes",
        statement=(
            f"With noisy labels, the excess risk of the best head $A = uI$ at $L = {power(NOISY_LENGTH)}$ is the "
            "minimum of its limit over the valley, not that of ridge regression (largest relative difference over "
            f"{len(noisy)} variances of the noise)."
        ),
        source="derived here",
        box="price-of-any-bounded-head",
        measured=float(np.max(np.abs([at.excess for at in noisy] / limits - 1))),
        expected=0.0,
        tolerance=SEARCH_ERROR,
        relation="≤",
        reason="corrections to the limit are of order $1/L$",
        alternative=Alternative(
            "one softmax head has the risk of ridge regression, the Bayes predictor",
            float(np.max(np.abs([ridge_excess(at.noise) for at in noisy] / limits - 1))),
        ),
    )


def _bound_claim() -> Claim:
    """Compare the price with its lower bound at every dimension up to a hundred."""
    dimensions = np.arange(1, 101)
    bounds = least_price(dimensions)
    return Claim(
        id="risk-and-parameters-above-e",
        statement=(
            "The price of one head is above $(1 + 2/(d + 1))^{(d + 3)/2}$, and this is above $e$ (least ratio of the "
            f"price to the larger of the two, for $d$ from 1 to {dimensions[-1]})."
        ),
        source="derived here",
        box="price-of-any-bounded-head",
        measured=float(np.min([price_of_one_head(int(d)) for d in dimensions] / np.maximum(bounds, np.e))),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        reason="the bound is proved in the box",
        alternative=Alternative(
            "one softmax head has the risk of the best linear head", float(np.min(1 / np.maximum(bounds, np.e)))
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the ends of the searches with the curve of the best A = uI, and the ratios with the bound e."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    ends = table[table["kind"] == "search"]
    for second, mark in ((False, {"marker": "o", "color": "C0"}), (True, {"marker": "x", "color": "C3"})):
        shown = ends[(ends["sees_labels"] > 0.5) == second]
        name = "scores depend on labels" if second else "scores depend on covariates"
        left.plot(shown["length"], shown["scaled_risk"], linestyle="none", markersize=7, label=name, **mark)
    left.plot(ends["length"], ends["block"], color="C0", linewidth=1.5)
    left.plot(ends["length"], ends["linear"], color="C1", linestyle="--", linewidth=1.5)
    last = ends.sort_values("length").iloc[-1]
    style = {"ha": "right", "fontsize": 10}
    label(left, last["length"], last["block"], "best $A=uI$", "C0", xytext=(0, -15), **style)
    label(left, last["length"], last["linear"], "best linear head", "C1", xytext=(0, 9), **style)
    left.set(xscale="log", xlabel="prompt length $L$", ylabel="mean square error times $L$")
    left.set_ylim(0, 1.5 * ends["scaled_risk"].max())  # room for the legend, wherever the searches ended
    left.set_title("all heads, $d=1$")
    left.legend(loc="upper left", fontsize=10, title="ends of searches", alignment="left", handletextpad=0.2)
    law, noisy = table[table["kind"] == "law"], table[table["kind"] == "noisy"]
    for column, colour, name, place in (
        ("over_linear", "C1", "relative to the best linear head", (0, 10)),
        ("over_ridge", "C2", "relative to ridge regression", (14, 4)),
    ):
        right.plot(law["noise"], law[column], color=colour, linewidth=2)
        right.plot(noisy["noise"], noisy[column], "o", color=colour, markersize=6)
        first = law.sort_values("noise").iloc[0]
        label(right, first["noise"], first[column], name, colour, xytext=place, fontsize=10)
    right.axhline(np.e, color=ink(), linestyle=":", linewidth=1.3)
    label(right, law["noise"].max(), np.e, "$e$", ink(), xytext=(0, -9))
    right.set(xscale="log", yscale="log", xlabel=r"noise $\sigma^2$", ylim=(2, None))
    right.set(ylabel="excess risk of softmax, ratio", title="heads $A=uI$, $d=5$")
    return figure


def least_price(dimension: np.ndarray) -> np.ndarray:
    """Return `(1 + 2/(d + 1))^{(d + 3)/2}`, a lower bound of `price_of_one_head`, which is itself above e."""
    return np.exp((dimension + 3) / 2 * np.log1p(2 / (dimension + 1)))
