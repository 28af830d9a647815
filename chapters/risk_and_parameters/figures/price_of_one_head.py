r"""The least risk of one softmax head on long prompts, over that of linear attention, falls to $e$ in high dimension.

The least risk of one softmax head with $A=uI$ divided by the least risk of linear attention. Symbols: minima of the
exact risk. Curve: the limit $L\to\infty$ in closed form. For short prompts the ratio is smaller, but above 1 at every
length and dimension searched. The table also has $du^2$ of the best softmax heads.

Alt: A chart against the dimension on a logarithmic axis. A curve falls from 4.2 at dimension one through 3.2 at five
towards a dashed line at e; grey points of the longest prompts lie on it, of shorter prompts below, all above a line at
one for linear attention.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import LONG, BestHead
from chapters.risk_and_parameters.style import tokens
from chapters.wording import power
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, markers
from lib.icl import best_in_the_valley

# Bound on the relative corrections to the closed limits at the lengths and dimensions where they are compared.
NEXT_TERM = 1e-3


def numbers(heads: list[BestHead]) -> Numbers:
    """Return the limit on a fine grid of dimensions, and the best heads; claim the price."""
    # on short prompts a search may end at scores so large that the risk no longer depends on them
    lowest = pd.DataFrame(heads).sort_values("ratio").drop_duplicates(["dimension", "length"])
    lowest = lowest.assign(squared=lowest["dimension"] * lowest["tilt"] ** 2).sort_values(["dimension", "length"])
    limit = pd.DataFrame({"dimension": np.unique(np.round(np.geomspace(1, 1000, 60)).astype(int)), "length": np.inf})
    valleys = limit["dimension"].map(best_in_the_valley)
    limit["ratio"] = [valley.price for valley in valleys]
    limit["squared"] = [d * valley.squared_tilt for d, valley in zip(limit["dimension"], valleys, strict=True)]
    columns = {
        "dimension": Column("Dimension $d$ of the covariates"),
        "length": Column("Prompt length $L$ at which the best head was searched; `inf`: $L → ∞$", "tokens"),
        "ratio": Column("Least risk of one softmax head $A = uI$ divided by that of linear attention, exact"),
        "squared": Column("$d u²$ of this softmax head"),
    }
    return Numbers(Table.of([lowest[list(columns)], limit], columns), _claims(pd.DataFrame(heads)))


def _claims(heads: pd.DataFrame) -> Claims:
    claim = Claims("risk-and-parameters", source="derived here", box="price-of-one-head")
    dimensions = heads["dimension"].nunique()
    longest = heads[heads["length"] == LONG]
    limit = longest["dimension"].map(lambda dimension: best_in_the_valley(dimension).price)
    corrections = "corrections to the limit are of order $1/L$ with a factor that grows with the dimension"
    claim.at_most(
        "price",
        f"At $L = {power(LONG)}$ the best softmax head $A = uI$, searched from three starts in each of {dimensions} "
        "dimensions, has the risk of the best linear head times the price in closed form (largest relative "
        "difference).",
        (longest["ratio"] / limit - 1).abs().max(),
        0,
        within=NEXT_TERM,
        because=corrections,
        rejects=("one softmax head has the risk of the best linear head", (1 / limit - 1).abs().max()),
    )
    best = longest["dimension"].map(lambda dimension: best_in_the_valley(dimension).squared_tilt ** 0.5)
    at_limit = longest["dimension"] ** -0.25
    claim.at_most(
        "best-head",
        f"At $L = {power(LONG)}$ the best softmax heads $A = uI$ have the $u$ that minimises the limit of the risk "
        "over the valley, and $b = 1/u$ (largest relative difference).",
        np.max(np.abs([longest["tilt"] / best - 1, longest["gain"] * best - 1])),
        0,
        within=NEXT_TERM,
        because=corrections,
        box="floor-of-the-valley",
        rejects=(
            "the limit of the infinite flow has the least risk",
            np.max(np.abs([at_limit / best - 1, best / at_limit - 1])),
        ),
    )
    large = 10**5
    claim.equal(
        "price-e",
        f"As the dimension grows, the price of one head on long prompts tends to $e$ (value at $d = {power(large)}$).",
        best_in_the_valley(large).price,
        np.e,
        within=NEXT_TERM,
        because="the next term in $1/d$ is of order 10⁻⁵ at this dimension",
        box="price-in-large-dimensions",
        rejects=("the price does not change beyond $d = 20$", best_in_the_valley(20).price),
    )
    of_one_token = (heads["dimension"] + 2) / (heads["dimension"] + 1)
    claim.at_least(
        "never-linear",
        f"At {heads['length'].nunique()} prompt lengths from {heads['length'].min()} to {power(LONG)} and in "
        f"{dimensions} dimensions, the price of one softmax head $A = uI$ is above its value for a single token, "
        "$(d + 2)/(d + 1)$ (least ratio of the two).",
        (heads["ratio"] / of_one_token).min(),
        1,
        because="at least the price of a single token",
        source="measured here",
        rejects=("the price is 1 at some length", (1 / of_one_token).min()),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the price against the dimension: the limit of long prompts, and finite prompts in grey."""
    curve, points = table[np.isinf(table["length"])], table[np.isfinite(table["length"])]
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    lengths = sorted(points["length"].unique().tolist())
    for length, alpha, marker in zip(lengths, np.linspace(0.35, 0.8, len(lengths)), markers(len(lengths)), strict=True):
        best = points[points["length"] == length]
        look = {"color": ink(), "alpha": alpha, "markersize": 8, "markeredgewidth": 0, "label": tokens(length)}
        axes.plot(best["dimension"], best["ratio"], marker, **look)
    axes.plot(curve["dimension"], curve["ratio"], color="C0", linewidth=2.6)
    label(axes, *curve[["dimension", "ratio"]].iloc[0], "softmax, long prompts", "C0", xytext=(12, 6), fontsize=12)
    axes.axhline(np.e, color=ink(), linestyle="--", linewidth=1)
    label(axes, curve["dimension"].max(), np.e, "$e$", ink(), xytext=(-4, -12), ha="right", fontsize=13)
    axes.axhline(1, color="C1", linewidth=2)
    label(axes, curve["dimension"].max(), 1, "linear attention", "C1", xytext=(-4, 9), ha="right", fontsize=12)
    axes.legend(loc="upper right", title="softmax, prompts of", title_fontsize=11)
    axes.set(xscale="log", xlabel="dimension $d$", ylim=(0.8, 4.6), ylabel="softmax risk / linear risk")
    return figure
