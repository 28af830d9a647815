r"""On long prompts the transition is as wide as the fluctuations of the relevant token's own score.

The width is the distance between the amplitudes $\sqrt\nu$ at which the relevant token has the mean weights $\frac15$
and $\frac45$. The mean-field formula leaves out the fluctuations of the relevant score. Dotted: the width of the
distribution of this score, which does not depend on length or temperature.

Alt: Chart of the width against prompt length on a logarithmic axis. Two solid curves fall towards a dotted horizontal
line. Two dashed curves in the same colours keep falling, far below it.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from chapters.threshold_in_temperature.phases import COLD
from chapters.threshold_in_temperature.style import COLD_COLOUR, HOT_COLOUR
from chapters.threshold_in_temperature.widths import HIGH, LOW, Widths, relative_correction
from chapters.wording import power
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, few_decades, ink, label


def numbers(widths: Sequence[Widths], variance: float) -> Numbers:
    """Return the widths by temperature and length; claim their limit at both temperatures."""
    groups = [
        {
            "temperature": curve.temperature,
            "decade": curve.decades,
            "width": curve.exact,
            "mean_field": curve.mean_field,
            "limit": curve.limit,
        }
        for curve in widths
    ]
    columns = {
        "temperature": Column("Temperature $√(2 ln L)/τ$, 1 at freezing"),
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "width": Column(f"Distance between the amplitudes $√ν$ with the mean weights {LOW:g} and {HIGH:g}, exact"),
        "mean_field": Column("The same in the mean-field formula"),
        "limit": Column("The same for the score of the relevant token alone"),
    }
    claim = Claims("threshold-in-temperature", source="derived here", box="step-in-temperature")
    for curve in widths:
        decade = int(curve.decades[-1])
        claim.equal(
            "width-cold" if curve.temperature == COLD else "width-hot",
            f"At {curve.temperature:g} times the freezing temperature the transition is as wide as the distribution of "
            f"the relevant token's score (distance between the amplitudes $√ν$ with the mean weights {LOW:g} and "
            f"{HIGH:g}, $L = {power(10**decade)}$).",
            curve.exact[-1],
            curve.limit,
            within=curve.limit * relative_correction(decade, curve.temperature, variance),
            because="the first-order effect of the other fluctuations, which add to the variance and fall like "
            "$1/ln L$",
            rejects=("the width of the mean-field formula", curve.mean_field[-1]),
        )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact widths, those of the mean-field formula, and the limit."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.8))
    for temperature, curve in table.groupby("temperature"):
        name, colour, height = ("cold", COLD_COLOUR, -14) if temperature < 1 else ("hot", HOT_COLOUR, 14)
        lengths, end = 10.0 ** curve["decade"], curve.iloc[-1]
        axes.plot(lengths, curve["width"], color=colour, linewidth=2, marker="o", markersize=5)
        axes.plot(lengths, curve["mean_field"], color=colour, linewidth=1.8, linestyle="--")
        text = rf"exact, {name} head, $\tau={1 / temperature:g}\,\sqrt{{2\,\ln L}}$"
        label(axes, lengths.iloc[-1], end["width"], text, colour, ha="right", xytext=(0, height))
        text = f"mean-field formula, {name} head"
        label(axes, lengths.iloc[-1], end["mean_field"], text, colour, ha="right", xytext=(0, 22))
    limit = table["limit"].iloc[0]
    axes.axhline(limit, color=ink(), linestyle=":", linewidth=1.8)
    label(axes, 1e9, limit, "fluctuations of\nthe relevant score", ink(), xytext=(0, -20))
    axes.set(xscale="log", xlabel="prompt length $L$", ylabel=r"width of the transition in $\sqrt{\nu}$")
    few_decades(axes)
    axes.yaxis.set_major_locator(MultipleLocator(0.5))
    axes.set_ylim(0, 1.1 * table["width"].max())
    return figure
