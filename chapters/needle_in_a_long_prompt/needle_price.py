r"""The hint that halves the risk, against the length of the prompt.

Points: the strength $\nu$ at which the best head of each kind has risk one half; softmax and sigmoid by bisection
on exact risks, linear in closed form. Dashed: $2\ln L$. Dotted: $L$. Sigmoid weights, the best there are
element-wise, need $2\ln(L-1)$ exactly; softmax needs a little less, and linear attention a hint of the size of the
prompt.

Alt: Log-log chart of hint strength against prompt length. Softmax and sigmoid points lie along a slowly rising
dashed curve and reach about 55 at a trillion tokens; linear points follow a straight dotted line up to a trillion.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONGER, SHORTER
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib import single_location as sl
from lib.single_location.activations import Sigmoid, optimal_risk
from lib.single_location.population import moments

HALF = 0.5
# Halvings of a bracket around the hint that halves the risk.
HALVINGS = 30
# The length at which linear attention is put to the test.
SHORT = 100.0
SIZE = (8.5, 4.5)
MARKERS = {"softmax": "o", "sigmoid": "s", "linear": "^"}


@dataclass(frozen=True)
class Thresholds:
    """The hint ν that halves the risk at each length L = 10^decade, by activation."""

    decades: list[int]
    lengths: Float[np.ndarray, " n"]
    snrs: Mapping[str, Float[np.ndarray, " n"]]


@dataclass(frozen=True)
class Linear:
    """Risk of linear attention at one length: at its own threshold, and at a hint of 2 ln L."""

    length: float
    risk: float
    blind: float


def find_thresholds(decades: list[int]) -> Thresholds:
    """The hint that halves the risk, by bisection; for linear attention in closed form."""
    lengths = 10.0 ** np.asarray(decades)

    def softmax(snrs):
        return np.asarray(sl.bayes_risk(sl.Spiked(lengths, snrs)))

    def elementwise(snrs):
        bias = -0.5 * snrs - np.log(lengths - 1.0)
        these = moments(sl.Spiked(lengths, snrs), Sigmoid(bias), sl.Overlaps(np.sqrt(snrs), snrs, 1.0, 1.0))
        return np.asarray(optimal_risk(these.hidden, these.power))

    thresholds = {name: halving(risk, lengths) for name, risk in (("softmax", softmax), ("sigmoid", elementwise))}
    # 1/(L/(L - 1) + ν/L) = ½
    thresholds["linear"] = lengths * (2.0 - lengths / (lengths - 1.0))
    return Thresholds(decades, lengths, thresholds)


def halving(risk, lengths: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The ν at which a falling `risk(snrs)` is one half, at every length."""
    low, high = np.full(lengths.shape, 0.5), 3.0 * np.log(lengths) + 4.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = risk(middle) > HALF
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return 0.5 * (low + high)


def try_linear() -> Linear:
    """The best linear head, by quadrature, at the closed form of its threshold and at that of softmax."""
    length = SHORT
    snrs = np.asarray([length * (2.0 - length / (length - 1.0)), 2.0 * np.log(length)])
    return Linear(length, *map(float, np.asarray(sl.best_risk(sl.Spiked(length, snrs), sl.linear))))


def numbers(thresholds: Thresholds, linear: Linear) -> Numbers:
    """The thresholds by activation and length: 2 ln L, 2 ln(L - 1) exactly, and about L."""
    claims = (_threshold_claim(thresholds), _elementwise_claim(thresholds), _linear_claim(linear))
    return Numbers(_table(thresholds), claims)


def _table(thresholds: Thresholds) -> Table:
    """By activation and length."""
    decades, lengths = thresholds.decades, thresholds.lengths
    frames = [
        pd.DataFrame({"activation": name, "decade": decades, "snr": snrs, "ratio": snrs / (2.0 * np.log(lengths))})
        for name, snrs in thresholds.snrs.items()
    ]
    columns = {
        "activation": Column("What a head makes of its scores", "name"),
        "decade": Column("Decimal logarithm of the prompt length L"),
        "snr": Column("Strength ν at which the best head of this kind has risk ½"),
        "ratio": Column("The same over 2 ln L"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _threshold_claim(thresholds: Thresholds) -> Claim:
    """The needle is found at 2 ln L, ever more exactly."""
    soft = dict(zip(thresholds.decades, thresholds.snrs["softmax"], strict=True))
    growth = (soft[LONGER] - soft[SHORTER]) / (2.0 * np.log(10.0) * (LONGER - SHORTER))
    return Claim(
        id="needle-threshold",
        statement=(
            f"The hint that halves the risk of softmax grows like 2 ln L: its slope in 2 ln L from L = 10^{SHORTER} to "
            f"10^{LONGER}, corrections of order √(ln L) included."
        ),
        source="derived here",
        measured=float(growth),
        expected=1.0,
        tolerance=0.1,
        alternative=Alternative("a threshold at ln L, where the mean of the hay's weights is overtaken", 0.5 * growth),
    )


def _elementwise_claim(thresholds: Thresholds) -> Claim:
    """By symmetry the best element-wise activation has risk ½ at 2 ln(L - 1)."""
    found = thresholds.snrs["sigmoid"]
    threshold = 2.0 * np.log(thresholds.lengths - 1.0)
    return Claim(
        id="needle-elementwise-threshold",
        statement=(
            "The best element-wise activation halves the risk at ν = 2 ln(L - 1), at every length: the largest "
            "relative distance of the hint found by bisection."
        ),
        source="derived here",
        measured=float(np.max(np.abs(found / threshold - 1.0))),
        expected=0.0,
        tolerance=1e-6,
        relation="≤",
        alternative=Alternative("2 ln L + 1 in place of 2 ln(L - 1)", float(np.max(1.0 / threshold))),
    )


def _linear_claim(linear: Linear) -> Claim:
    """Linear attention needs ν ≫ L: the closed form of its threshold, put into the quadrature."""
    return Claim(
        id="needle-linear",
        statement=(
            "Linear attention needs a hint as strong as the prompt is long: its risk at ν = L(2 - L/(L-1)) for "
            f"L = {linear.length:g}, by quadrature."
        ),
        source="derived here",
        measured=linear.risk,
        expected=HALF,
        tolerance=1e-8,
        alternative=Alternative("a hint of 2 ln L, which is enough for softmax", linear.blind),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Points of three activations along two reference lines."""
    figure, axes = plt.subplots(figsize=SIZE)
    length = np.geomspace(10.0 ** table["decade"].min(), 10.0 ** table["decade"].max(), 100)
    axes.plot(length, 2 * np.log(length), color=ink(), linestyle="--", linewidth=1.5, label=r"$2\,\ln L$")
    axes.plot(length, length, color=ink(), linestyle=":", linewidth=1.5, label="$L$")
    for index, (name, marker) in enumerate(MARKERS.items()):
        curve = table[table["activation"] == name]
        axes.plot(
            10.0 ** curve["decade"], curve["snr"], marker, color=f"C{index}", markersize=8, fillstyle="none", label=name
        )
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel=r"hint that halves the risk, $\nu_{1/2}$")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
