r"""The hint that halves the risk, against the length of the prompt.

Points: the strength $\nu$ at which the best head of each kind has risk one half; softmax and sigmoid by bisection
on exact risks, linear in closed form. Dashed: $2\ln L$. Dotted: $L$. Sigmoid weights, the best there are
element-wise, need $2\ln(L-1)$ exactly; softmax needs a little less, and linear attention a hint of the size of the
prompt.

Alt: Log-log chart of hint strength against prompt length. Softmax and sigmoid points lie along a slowly rising
dashed curve and reach about 55 at a trillion tokens; linear points follow a straight dotted line up to a trillion.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONG_DECADE, SHORT_DECADE
from chapters.needle_in_a_long_prompt.style import SIZE
from chapters.needle_in_a_long_prompt.thresholds import HALF, LinearRisks, Thresholds
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label

MARKS = {"softmax": "o", "sigmoid": "s", "linear": "^"}
LINES = {"2 ln L": ("--", r"$2\,\ln L$"), "L": (":", "$L$")}


def numbers(thresholds: Thresholds, lines: Thresholds, linear: LinearRisks) -> Numbers:
    """The thresholds by activation and length: 2 ln L, 2 ln(L - 1) exactly, and about L."""
    claims = (_threshold_claim(thresholds), _elementwise_claim(thresholds), _linear_claim(linear))
    return Numbers(_table(thresholds, lines), claims)


def _table(thresholds: Thresholds, lines: Thresholds) -> Table:
    """By activation and length; then the lines of reference."""
    frames = [
        pd.DataFrame(
            {"activation": name, "decade": these.decades, "snr": snrs, "ratio": snrs / (2.0 * np.log(these.lengths))}
        )
        for these in (thresholds, lines)
        for name, snrs in these.snrs.items()
    ]
    columns = {
        "activation": Column("What a head makes of its scores; `2 ln L` and `L` are lines of reference", "name"),
        "decade": Column("Decimal logarithm of the prompt length L"),
        "snr": Column("Strength ν at which the best head of this kind has risk ½, or on the line"),
        "ratio": Column("The same over 2 ln L"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _threshold_claim(thresholds: Thresholds) -> Claim:
    """The needle is found at 2 ln L, ever more exactly."""
    soft = dict(zip(thresholds.decades, thresholds.snrs["softmax"], strict=True))
    flat = dict(zip(thresholds.decades, thresholds.snrs["linear"], strict=True))
    straw = 2.0 * np.log(10.0) * np.asarray([SHORT_DECADE, LONG_DECADE])
    return Claim(
        id="needle-threshold",
        statement=(
            f"The hint that halves the risk of softmax grows like 2 ln L: its slope in 2 ln L from L = 10^{SHORT_DECADE} to "
            f"10^{LONG_DECADE}, up to the √ν by which the needle's own score fluctuates."
        ),
        source="derived here",
        box="tallest-straw",
        measured=float((soft[LONG_DECADE] - soft[SHORT_DECADE]) / np.ptp(straw)),
        expected=1.0,
        # the theorem is a limit; at finite length the needle's score fluctuates by √ν, at ν = 2 ln L
        tolerance=float(np.ptp(np.sqrt(straw)) / np.ptp(straw)),
        alternative=Alternative(
            "linear attention in its place", float((flat[LONG_DECADE] - flat[SHORT_DECADE]) / np.ptp(straw))
        ),
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
        box="elementwise-threshold",
        measured=float(np.max(np.abs(found / threshold - 1.0))),
        expected=0.0,
        tolerance=1e-6,  # quadrature and bisection are good to 1e-9
        relation="≤",
        alternative=Alternative(
            "2 ln L in place of 2 ln(L - 1)", float(np.max(np.abs(found / (2.0 * np.log(thresholds.lengths)) - 1.0)))
        ),
    )


def _linear_claim(linear: LinearRisks) -> Claim:
    """Linear attention needs ν ≫ L: the closed form of its threshold, put into the quadrature."""
    return Claim(
        id="needle-linear",
        statement=(
            "Linear attention needs a hint as strong as the prompt is long: its risk at ν = L(2 - L/(L-1)) for "
            f"L = {linear.length:g}, by quadrature."
        ),
        source="derived here",
        box="linear-threshold",
        measured=linear.risk,
        expected=HALF,
        tolerance=1e-8,
        alternative=Alternative("a hint of 2 ln L, which is enough for softmax", linear.blind),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Points of three activations along two reference lines."""
    figure, axes = plt.subplots(figsize=SIZE)
    for name, (dashes, law) in LINES.items():
        line = table[table["activation"] == name]
        axes.plot(10.0 ** line["decade"], line["snr"], dashes, color=ink(), linewidth=1.5)
        middle = line.iloc[len(line) // 2]
        label(axes, 10.0 ** middle["decade"], middle["snr"], law, ink(), xytext=(-8, 12), ha="right", va="bottom")
    colours = {"softmax": "C0", "linear": "C1", "sigmoid": "C2"}
    for name, marker in MARKS.items():
        points = table[table["activation"] == name]
        style = {"color": colours[name], "markersize": 8, "fillstyle": "none", "label": name}
        axes.plot(10.0 ** points["decade"], points["snr"], marker, **style)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel=r"hint that halves the risk, $\nu_{1/2}$")
    axes.legend(loc="upper left")
    headline(figure, r"Softmax and sigmoid pay $\mathbf{2\,ln\,L}$ for a needle, linear attention pays $\mathbf{L}$")
    return figure
