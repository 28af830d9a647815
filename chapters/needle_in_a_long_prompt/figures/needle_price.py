r"""Softmax and sigmoid need a signal strength of about $2\ln L$, linear attention one of about $L$.

The signal strength is that at which the best head of each kind has risk one half. Points for softmax and sigmoid come
from bisection on exact risks, those for linear attention from a closed form. Sigmoid weights, the best element-wise
ones, need exactly $2\ln(L-1)$, and softmax needs a little less.

Alt: Log-log chart of signal strength against prompt length. Softmax and sigmoid points follow a slowly rising dashed
curve and reach about 55 at a trillion tokens; linear points follow a straight dotted line up to a trillion.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONG_DECADE, SHORT_DECADE
from chapters.needle_in_a_long_prompt.thresholds import HALF, LinearRisks, Thresholds
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

LOOKS = {"softmax": ("C0", "o"), "sigmoid": ("C2", "s"), "linear": ("C1", "^")}
LINES = {"2 ln L": ("--", r"$2\,\ln L$"), "L": (":", "$L$")}


def numbers(thresholds: Thresholds, lines: Thresholds, linear: LinearRisks) -> Numbers:
    """Return the thresholds by activation and length; claim 2 ln L, exactly 2 ln(L - 1), and about L."""
    groups = [
        {"activation": name, "decade": solved.decades, "snr": snrs, "ratio": snrs / (2.0 * np.log(solved.lengths))}
        for solved in (thresholds, lines)
        for name, snrs in solved.snrs.items()
    ]
    columns = {
        "activation": Column("Activation of the head; `2 ln L` and `L` are reference lines", "name"),
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "snr": Column("Signal strength $ν$ at which the best head of this kind has risk ½, or the value of the line"),
        "ratio": Column("The signal strength over $2 ln L$"),
    }
    claim = Claims("needle", source="derived here")
    ends = np.searchsorted(thresholds.decades, [SHORT_DECADE, LONG_DECADE])
    two_log_lengths = 2.0 * np.log(10.0) * np.asarray([SHORT_DECADE, LONG_DECADE])
    slope_of_root = np.ptp(np.sqrt(two_log_lengths)) / np.ptp(two_log_lengths)
    claim.equal(
        "threshold",
        "The signal strength at which the risk of softmax is one half in the spiked model grows like $2 ln L$ (slope "
        f"in $2 ln L$ from $L = 10^{{{SHORT_DECADE}}}$ to $10^{{{LONG_DECADE}}}$).",
        np.diff(thresholds.snrs["softmax"][ends])[0] / np.ptp(two_log_lengths),
        1,
        within=slope_of_root,
        because="the theorem is a limit; at finite length the score of the relevant token fluctuates by $√ν$, at "
        "$ν = 2 ln L$",
        box="tallest-straw",
        rejects=("it grows like $√(2 ln L)$, the largest of $L$ scores", slope_of_root),
    )
    from_threshold, from_limit = (
        np.abs(thresholds.snrs["sigmoid"] / (2.0 * np.log(others)) - 1.0).max()
        for others in (thresholds.lengths - 1.0, thresholds.lengths)
    )
    claim.at_most(
        "elementwise-threshold",
        "In the spiked model the best element-wise activation has risk one half at $ν = 2 ln(L - 1)$, at every length "
        "(largest relative distance of the strength found by bisection).",
        from_threshold,
        0,
        within=1e-6,
        because="quadrature and bisection are accurate to 10⁻⁹",
        box="elementwise-threshold",
        rejects=("$2 ln L$ instead of $2 ln(L - 1)$", from_limit),
    )
    claim.equal(
        "linear",
        "Linear attention has risk one half in the spiked model at a signal strength of about $L$ (risk at "
        f"$ν = L(2 - L/(L - 1))$ for $L = {linear.length:g}$, by quadrature).",
        linear.risk,
        HALF,
        within=1e-8,
        because="the documented error of the quadrature, with a reserve",
        box="linear-threshold",
        rejects=("a signal strength of $2 ln L$, which is enough for softmax", linear.at_softmax_threshold),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the thresholds of three activations and two reference lines."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    for name, (dashes, formula) in LINES.items():
        line = table[table["activation"] == name]
        axes.plot(10.0 ** line["decade"], line["snr"], dashes, color=ink(), linewidth=1.5)
        middle = line.iloc[len(line) // 2]
        label(axes, 10.0 ** middle["decade"], middle["snr"], formula, ink(), xytext=(-8, 12), ha="right", va="bottom")
    inset = axes.inset_axes((0.6, 0.27, 0.38, 0.26))  # between the line L and the points of the other two heads
    line = table[table["activation"] == "2 ln L"]
    inset.plot(10.0 ** line["decade"], line["snr"], "--", color=ink(), linewidth=1.2)
    for name, (colour, marker) in LOOKS.items():
        points = table[table["activation"] == name]
        lengths, look = 10.0 ** points["decade"], {"color": colour, "marker": marker, "fillstyle": "none"}
        axes.plot(lengths, points["snr"], linestyle="", markersize=8, label=name, **look)
        if name != "linear":
            inset.plot(lengths, points["snr"], linestyle="", markersize=7, **look)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel=r"signal strength with risk ½, $\nu_{1/2}$")
    inset.set(xscale="log", ylim=(0, 1.15 * line["snr"].max()))
    inset.set_title("the two lower ones, linear axis", fontsize=10, loc="right")
    axes.legend(loc="upper left")
    return figure
