r"""Neither a search over all heads in one dimension nor noise on the labels avoids the price of one softmax head.

Left: ends of searches over all heads for $d=1$ from random starts. At the second minimum scores depend on the label and
values on the covariate. Right: excess risk of the best head $A=uI$ divided by that of the best linear head and by that
of ridge regression, for $L\to\infty$; the points were found by search.

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
from chapters.wording import power
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.icl import best_in_the_valley, price_of_one_head

# Bound on the relative error of a search and on the relative correction to the limit at the compared length.
SEARCH_ERROR = 1e-3


def numbers(searches: list[LineSearch], noisy: list[NoisyBest]) -> Numbers:
    """Return the table of the searches and the claims that no head avoids the price."""
    ends = pd.DataFrame(searches).rename(columns={"label_weight": "sees_labels"})
    found = pd.DataFrame(noisy)
    limit = pd.DataFrame({"noise": np.geomspace(found["noise"].min(), found["noise"].max(), 40)})
    limit["excess"] = [best_in_the_valley(DIMENSION, noise)[1] for noise in limit["noise"]]
    groups = [ends.assign(kind="search")]
    for kind, rows in (("law", limit), ("noisy", found)):
        # `lim 2L (R - ½σ²)` of the best linear head, and of ridge regression, the Bayes predictor
        linear, ridge = DIMENSION * (DIMENSION + 1 + rows["noise"]), DIMENSION * rows["noise"]
        ratios = {"over_linear": rows["excess"] / linear, "over_ridge": rows["excess"] / ridge}
        groups.append(rows[["noise"]].assign(kind=kind, **ratios))
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
    return Numbers(Table.of(groups, columns), _claims(ends, found))


def _claims(ends: pd.DataFrame, noisy: pd.DataFrame) -> Claims:
    claim = Claims("risk-and-parameters", source="derived here", box="price-of-any-bounded-head")
    by_length = ends.groupby("length")["scaled_risk"]
    claim.at_most(
        "all-heads",
        f"For $d = 1$, no search over all heads $(U, V)$ from {by_length.size().iloc[0]} random starts ends at a "
        f"smaller risk than the best head $A = uI$ (largest relative gain over {by_length.ngroups} lengths).",
        (ends["block"] / by_length.transform("min") - 1).max(),
        0,
        within=SEARCH_ERROR,
        because="accuracy of the searches",
        source="measured here",
        rejects=("some softmax head has the risk of the best linear head", (ends["block"] / ends["linear"] - 1).max()),
    )
    limits = np.asarray([best_in_the_valley(DIMENSION, noise)[1] for noise in noisy["noise"]])
    claim.at_most(
        "not-bayes",
        f"With noisy labels, the excess risk of the best head $A = uI$ at $L = {power(NOISY_LENGTH)}$ is the minimum "
        f"of its limit over the valley, not that of ridge regression (largest relative difference over {len(noisy)} "
        "variances of the noise).",
        np.max(np.abs(noisy["excess"] / limits - 1)),
        0,
        within=SEARCH_ERROR,
        because="corrections to the limit are of order $1/L$",
        rejects=(
            "one softmax head has the risk of ridge regression, the Bayes predictor",
            np.max(np.abs(DIMENSION * noisy["noise"] / limits - 1)),
        ),
    )
    dimensions = np.arange(1, 101)
    bounds = np.maximum(least_price(dimensions), np.e)
    claim.at_least(
        "above-e",
        "The price of one head is above $(1 + 2/(d + 1))^{(d + 3)/2}$, and this is above $e$ (least ratio of the price "
        f"to the larger of the two, for $d$ from 1 to {dimensions[-1]}).",
        np.min([price_of_one_head(int(d)) for d in dimensions] / bounds),
        1,
        because="the bound is proved in the box",
        rejects=("one softmax head has the risk of the best linear head", np.min(1 / bounds)),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the ends of the searches with the curve of the best A = uI, and the ratios with the bound e."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    ends = table[table["kind"] == "search"]
    for second, mark in ((False, {"marker": "o", "color": "C0"}), (True, {"marker": "x", "color": "C3"})):
        shown = ends[(ends["sees_labels"] > 0.5) == second]
        left.plot(shown["length"], shown["scaled_risk"], linestyle="none", markersize=7, **mark)
        if second and len(shown):
            words, top = "cross: second minimum,\nscores depend on labels", 1.08 * ends["scaled_risk"].max()
            label(left, ends["length"].min(), top, words, mark["color"], xytext=(0, 0), fontsize=10)
    left.plot(ends["length"], ends["block"], color="C0", linewidth=1.5)
    left.plot(ends["length"], ends["linear"], color="C1", linestyle="--", linewidth=1.5)
    last = ends.sort_values("length").iloc[-1]
    block, linear = "most searches end\nat the best $A=uI$", "best linear head"
    for column, name, colour, shift in (("block", block, "C0", -42), ("linear", linear, "C1", 9)):
        label(left, last["length"], last[column], name, colour, xytext=(0, shift), ha="right", fontsize=10)
    left.set(xscale="log", xlabel="prompt length $L$", ylabel="mean square error times $L$")
    left.set_ylim(0, 1.2 * ends["scaled_risk"].max())
    left.set_title("searches over all heads, $d=1$")
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
    label(right, law["noise"].max(), np.e, "at least $e$", ink(), xytext=(0, -9), ha="right", fontsize=10)
    right.set(xscale="log", yscale="log", xlabel=r"noise $\sigma^2$", ylim=(2, None))
    right.set(ylabel="excess risk of softmax, ratio", title="heads $A=uI$, $d=5$")
    return figure


def least_price(dimension: np.ndarray) -> np.ndarray:
    """Return `(1 + 2/(d + 1))^{(d + 3)/2}`, a lower bound of `price_of_one_head`, which is itself above e."""
    return np.exp((dimension + 3) / 2 * np.log1p(2 / (dimension + 1)))
