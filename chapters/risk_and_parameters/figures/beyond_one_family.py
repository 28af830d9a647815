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
from lib.icl import best_in_the_valley

# Bound on the relative error of a search and on the relative correction to the limit at the compared length.
SEARCH_ERROR = 1e-3


def numbers(searches: list[LineSearch], noisy: list[NoisyBest]) -> Numbers:
    """Return the table of the searches and the claims that no head avoids the price."""
    ends, found = pd.DataFrame(searches), pd.DataFrame(noisy)
    depend_on = np.where(ends["label_weight"] > 0.5, "labels", "covariates")
    groups = [{"kind": depend_on, "length": ends["length"], "noise": 0.0, "value": ends["scaled_risk"]}]
    of_length = ends.drop_duplicates("length")
    for kind in ("block", "linear"):
        groups.append({"kind": kind, "length": of_length["length"], "noise": 0.0, "value": of_length[kind]})
    limit = pd.DataFrame({"noise": np.geomspace(found["noise"].min(), found["noise"].max(), 40)})
    limit["excess"] = [best_in_the_valley(DIMENSION, noise).limit for noise in limit["noise"]]
    for length, rows in ((np.inf, limit), (NOISY_LENGTH, found)):
        noise = rows["noise"]
        # `lim 2L (R - ½σ²)` of the best linear head, and of ridge regression, the Bayes predictor
        for kind, other in (("over_linear", DIMENSION * (DIMENSION + 1 + noise)), ("over_ridge", DIMENSION * noise)):
            groups.append({"kind": kind, "length": length, "noise": noise, "value": rows["excess"] / other})
    columns = {
        "kind": Column(
            "For $d = 1$, `covariates`, `labels`: end of a search over all heads, by what its scores mostly depend on; "
            f"`block`: best $A = uI$; `linear`: best linear head. For $d = {DIMENSION}$, `over_linear`, `over_ridge`: "
            "best $A = uI$ over best linear head, and over ridge regression",
            "name",
        ),
        "length": Column("Prompt length $L$; `inf`: $L → ∞$", "tokens"),
        "noise": Column("Variance of the label noise"),
        "value": Column("$2R·L$ for $d = 1$, else the ratio of excess risks"),
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
    limits = np.asarray([best_in_the_valley(DIMENSION, noise).limit for noise in noisy["noise"]])
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
        np.min([best_in_the_valley(int(d)).price for d in dimensions] / bounds),
        1,
        because="the bound is proved in the box",
        rejects=("one softmax head has the risk of the best linear head", np.min(1 / bounds)),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the ends of the searches with the curve of the best A = uI, and the ratios with the bound e."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    searched = table[table["noise"] == 0]
    for kind, mark in (("covariates", {"marker": "o", "color": "C0"}), ("labels", {"marker": "x", "color": "C3"})):
        ends = searched[searched["kind"] == kind]
        left.plot(ends["length"], ends["value"], linestyle="none", markersize=7, **mark)
        if kind == "labels" and len(ends):
            words, top = "cross: second minimum,\nscores depend on labels", 1.08 * searched["value"].max()
            label(left, searched["length"].min(), top, words, mark["color"], xytext=(0, 0), fontsize=10)
    for kind, name, colour, linestyle, shift in (
        ("block", "most searches end\nat the best $A=uI$", "C0", "-", -42),
        ("linear", "best linear head", "C1", "--", 9),
    ):
        best = searched[searched["kind"] == kind]
        left.plot(best["length"], best["value"], color=colour, linestyle=linestyle, linewidth=1.5)
        label(left, *best[["length", "value"]].iloc[-1], name, colour, xytext=(0, shift), ha="right", fontsize=10)
    left.set(xscale="log", xlabel="prompt length $L$", ylabel="mean square error times $L$")
    left.set(ylim=(0, 1.2 * searched["value"].max()), title="searches over all heads, $d=1$")
    for kind, colour, name, place in (
        ("over_linear", "C1", "relative to the best linear head", (0, 10)),
        ("over_ridge", "C2", "relative to ridge regression", (14, 4)),
    ):
        ratios = table[table["kind"] == kind]
        limit, found = ratios[np.isinf(ratios["length"])], ratios[np.isfinite(ratios["length"])]
        right.plot(limit["noise"], limit["value"], color=colour, linewidth=2)
        right.plot(found["noise"], found["value"], "o", color=colour, markersize=6)
        label(right, limit["noise"].iloc[0], limit["value"].iloc[0], name, colour, xytext=place, fontsize=10)
    right.axhline(np.e, color=ink(), linestyle=":", linewidth=1.3)
    label(right, table["noise"].max(), np.e, "at least $e$", ink(), xytext=(0, -9), ha="right", fontsize=10)
    right.set(xscale="log", yscale="log", xlabel=r"noise $\sigma^2$", ylim=(2, None))
    right.set(ylabel="excess risk of softmax, ratio", title="heads $A=uI$, $d=5$")
    return figure


def least_price(dimension: np.ndarray) -> np.ndarray:
    """Return `(1 + 2/(d + 1))^{(d + 3)/2}`, a lower bound of the price of one head, which is itself above e."""
    return np.exp((dimension + 3) / 2 * np.log1p(2 / (dimension + 1)))
