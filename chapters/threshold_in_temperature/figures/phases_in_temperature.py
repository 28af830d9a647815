r"""On long prompts the threshold of softmax hardly depends on temperature below freezing, and rises above it.

Scores of spread $\tau$ freeze at the temperature 1. The vertical axis is the signal strength at which the relevant
token has the mean weight $\frac12$ in the spiked model. All curves are exact. Dashed: the limit $L\to\infty$; in the
shaded region the relevant token has all the weight. Dotted: the best head for each signal, with $\tau=\sqrt\nu$.

Alt: Chart of signal strength against temperature. A dashed line is flat at one up to temperature one and then curves
upwards, with a shaded region above it. Coloured curves lie just below the flat part, closer for longer prompts, and on
the rising part. A dotted falling curve passes through the point where both are one.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from chapters.threshold_in_temperature.phases import (
    COLD,
    HOT,
    Thresholds,
    TwoPhases,
    limit_amplitude,
    log_length,
    spread,
)
from chapters.wording import power
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, legend_with


def numbers(thresholds: Sequence[Thresholds], phases: TwoPhases) -> Numbers:
    """Return the thresholds by length and temperature; claim both phases."""
    groups = [
        {
            "decade": curve.decade,
            "temperature": curve.temperatures,
            "ratio": curve.exact,
            "limit": limit_amplitude(curve.temperatures) ** 2,
            "best_head": curve.temperatures**-2.0,
        }
        for curve in thresholds
    ]
    columns = {
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "temperature": Column("Temperature $√(2 ln L)/τ$, 1 at freezing"),
        "ratio": Column("Signal strength $ν$ over $2 ln L$ at which the mean weight of the relevant token is ½"),
        "limit": Column("The same in the limit of long prompts"),
        "best_head": Column("Signal strength over $2 ln L$ for which the temperature is that of the best head"),
    }
    claim = Claims("threshold-in-temperature", source="[Do25]", box="limit-in-temperature")
    short, long = (power(10**decade) for decade in phases.decades)
    log_lengths = np.array([log_length(decade) for decade in phases.decades])
    grown = np.ptp(2.0 * log_lengths)
    claim.equal(
        "cold",
        f"At {COLD:g} times the freezing temperature the signal strength at which the relevant token has the mean "
        f"weight ½ grows like $2 ln L$ (slope in $2 ln L$ from $L = {short}$ to ${long}$).",
        np.ptp(2.0 * log_lengths * phases.cold) / grown,
        1.0,
        within=2.0 * np.ptp(np.log(log_lengths)) / grown,
        because="twice the change of $ln ln L$, by which the squared largest of $L$ normal scores is below $2 ln L$",
        rejects=(
            "the formula for temperatures above freezing, which averages the other exponentials, at every temperature",
            (COLD + 1.0 / COLD) ** 2 / 4.0,
        ),
    )
    length = log_lengths[1]
    tau, psi = spread(length, HOT), limit_amplitude(HOT)
    # the variance of the other sum over its squared mean, divided by τ and by the amplitude at freezing
    correction = np.exp(tau**2 - length) / tau / np.sqrt(2.0 * length)
    claim.equal(
        "hot",
        f"At {HOT:g} times the freezing temperature the signal strength at which the relevant token has the mean "
        f"weight ½, in units of $2 ln L$, is that of the limit ($L = {long}$).",
        phases.hot,
        psi**2,
        within=2.0 * psi * correction,
        because="twice the first-order effect of the fluctuations of the sum over the other tokens",
        rejects=("the relevant token needs the largest other score at every temperature", 1.0),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact thresholds, their limit with the region above it, and the best head."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    corner = pd.DataFrame({"temperature": [1.0], "limit": [1.0], "best_head": [1.0]})
    limit = pd.concat([table.drop_duplicates("temperature"), corner]).sort_values("temperature")
    top = 1.12 * table["limit"].max()
    axes.fill_between(limit["temperature"], limit["limit"], top, color="C0", alpha=0.12, linewidth=0)
    for decade, curve, colour in coloured_rows(table, "decade"):
        axes.plot(curve["temperature"], curve["ratio"], color=colour, linewidth=2, label=f"$L=10^{{{decade}}}$")
    axes.plot(limit["temperature"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5)
    axes.plot(limit["temperature"], limit["best_head"], color=ink(), linestyle=":", linewidth=1.8)
    axes.set(xlabel=r"temperature $\sqrt{2\,\ln L}/\tau$", ylabel=r"signal strength, $\nu/(2\,\ln L)$")
    axes.set(xlim=(table["temperature"].min(), table["temperature"].max()), ylim=(0, top))
    axes.vlines(1, 1, top, color=ink(), linewidth=1, alpha=0.5)
    label(axes, 1, 0.97 * top, "freezing", ink(), xytext=(6, 0))
    label(axes, 1.35, 2.35, "the relevant token\nhas all the weight", ink(), xytext=(0, 0), ha="center")
    label(axes, 2.3, 0.85, "its weight vanishes", ink(), xytext=(0, 0), ha="center")
    lines = {r"limit $L\,\to\,\infty$": legend_line("--", 1.5), "best head": legend_line(":", 1.8)}
    legend_with(axes, lines, loc="lower left", ncols=2, fontsize=10, labelspacing=0.3)
    return figure
