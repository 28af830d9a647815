r"""Softmax and sigmoid need a signal strength of about $2\ln L$, linear attention one of about $L$.

Both axes are logarithmic: the length $L$ of the prompt, and the signal strength $\nu$ at which the best head of each
kind has risk one half. Points for softmax and sigmoid come from bisection on exact risks, those for linear attention
from a closed form. Dashed: $2\ln L$. Dotted: $L$. The inset shows the two lower curves on a linear axis. Sigmoid
weights, the best element-wise ones, need exactly $2\ln(L-1)$, and softmax needs a little less. The grey tick on the
axis is the longest prompt of {doc}`real_heads`.

Alt: Log-log chart of signal strength against prompt length. Softmax and sigmoid points follow a slowly rising dashed
curve and reach about 55 at a trillion tokens; linear points follow a straight dotted line up to a trillion.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONG_DECADE, SHORT_DECADE
from chapters.needle_in_a_long_prompt.thresholds import HALF, LinearRisks, Thresholds
from chapters.style import mark_real_prompt
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

MARKS = {"softmax": "o", "sigmoid": "s", "linear": "^"}
LINES = {"2 ln L": ("--", r"$2\,\ln L$"), "L": (":", "$L$")}


def numbers(thresholds: Thresholds, lines: Thresholds, linear: LinearRisks) -> Numbers:
    """Return the thresholds by activation and length; claim 2 ln L, exactly 2 ln(L - 1), and about L."""
    claims = (_threshold_claim(thresholds), _elementwise_claim(thresholds), _linear_claim(linear))
    return Numbers(_table(thresholds, lines), claims)


def _table(thresholds: Thresholds, lines: Thresholds) -> Table:
    """Return one row per activation and length, and the reference lines."""
    frames = [
        pd.DataFrame(
            {
                "activation": name,
                "decade": solved.decades,
                "snr": snrs,
                "ratio": snrs / (2.0 * np.log(solved.lengths)),
            }
        )
        for solved in (thresholds, lines)
        for name, snrs in solved.snrs.items()
    ]
    columns = {
        "activation": Column("Activation of the head; `2 ln L` and `L` are reference lines", "name"),
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "snr": Column("Signal strength $ν$ at which the best head of this kind has risk ½, or the value of the line"),
        "ratio": Column("The signal strength over $2 ln L$"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _threshold_claim(thresholds: Thresholds) -> Claim:
    """Claim that the threshold of softmax grows like 2 ln L."""
    softmax = dict(zip(thresholds.decades, thresholds.snrs["softmax"], strict=True))
    linear = dict(zip(thresholds.decades, thresholds.snrs["linear"], strict=True))
    two_log_lengths = 2.0 * np.log(10.0) * np.asarray([SHORT_DECADE, LONG_DECADE])
    return Claim(
        id="needle-threshold",
        statement=(
            "The signal strength at which the risk of softmax is one half in the spiked model grows like $2 ln L$ "
            f"(slope in $2 ln L$ from $L = 10^{{{SHORT_DECADE}}}$ to $10^{{{LONG_DECADE}}}$)."
        ),
        source="derived here",
        box="tallest-straw",
        measured=float((softmax[LONG_DECADE] - softmax[SHORT_DECADE]) / np.ptp(two_log_lengths)),
        expected=1.0,
        tolerance=float(np.ptp(np.sqrt(two_log_lengths)) / np.ptp(two_log_lengths)),
        reason=(
            "the theorem is a limit; at finite length the score of the relevant token fluctuates by $√ν$, at "
            "$ν = 2 ln L$"
        ),
        alternative=Alternative(
            "linear attention instead of softmax",
            float((linear[LONG_DECADE] - linear[SHORT_DECADE]) / np.ptp(two_log_lengths)),
        ),
    )


def _elementwise_claim(thresholds: Thresholds) -> Claim:
    """Claim that the best element-wise activation has risk ½ at 2 ln(L - 1)."""
    solved = thresholds.snrs["sigmoid"]
    threshold = 2.0 * np.log(thresholds.lengths - 1.0)
    return Claim(
        id="needle-elementwise-threshold",
        statement=(
            "In the spiked model the best element-wise activation has risk one half at $ν = 2 ln(L - 1)$, at every "
            "length (largest relative distance of the strength found by bisection)."
        ),
        source="derived here",
        box="elementwise-threshold",
        measured=float(np.max(np.abs(solved / threshold - 1.0))),
        expected=0.0,
        tolerance=1e-6,
        reason="quadrature and bisection are accurate to 10⁻⁹",
        relation="≤",
        alternative=Alternative(
            "$2 ln L$ instead of $2 ln(L - 1)$",
            float(np.max(np.abs(solved / (2.0 * np.log(thresholds.lengths)) - 1.0))),
        ),
    )


def _linear_claim(linear: LinearRisks) -> Claim:
    """Claim the closed form of the threshold of linear attention, about L, by a quadrature of the risk."""
    return Claim(
        id="needle-linear",
        statement=(
            "Linear attention has risk one half in the spiked model at a signal strength of about $L$ (risk at "
            f"$ν = L(2 - L/(L - 1))$ for $L = {linear.length:g}$, by quadrature)."
        ),
        source="derived here",
        box="linear-threshold",
        measured=linear.risk,
        expected=HALF,
        tolerance=1e-8,
        reason="the documented error of the quadrature, with a reserve",
        alternative=Alternative(
            "a signal strength of $2 ln L$, which is enough for softmax", linear.at_softmax_threshold
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the thresholds of three activations and two reference lines."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    for name, (dashes, formula) in LINES.items():
        line = table[table["activation"] == name]
        axes.plot(10.0 ** line["decade"], line["snr"], dashes, color=ink(), linewidth=1.5)
        middle = line.iloc[len(line) // 2]
        label(axes, 10.0 ** middle["decade"], middle["snr"], formula, ink(), xytext=(-8, 12), ha="right", va="bottom")
    colours = {"softmax": "C0", "linear": "C1", "sigmoid": "C2"}
    for name, marker in MARKS.items():
        points = table[table["activation"] == name]
        style = {"color": colours[name], "markersize": 8, "fillstyle": "none", "label": name}
        axes.plot(10.0 ** points["decade"], points["snr"], marker, **style)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel=r"signal strength with risk ½, $\nu_{1/2}$")
    inset = axes.inset_axes((0.6, 0.27, 0.38, 0.26))  # between the line L and the points of the other two heads
    line = table[table["activation"] == "2 ln L"]
    inset.plot(10.0 ** line["decade"], line["snr"], "--", color=ink(), linewidth=1.2)
    for name in ("softmax", "sigmoid"):
        points = table[table["activation"] == name]
        style = {"color": colours[name], "markersize": 7, "fillstyle": "none"}
        inset.plot(10.0 ** points["decade"], points["snr"], MARKS[name], **style)
    inset.set(xscale="log", ylim=(0, 1.15 * line["snr"].max()))
    inset.set_title("the two lower ones, linear axis", fontsize=10, loc="right")
    axes.legend(loc="upper left")
    mark_real_prompt(axes)
    return figure
