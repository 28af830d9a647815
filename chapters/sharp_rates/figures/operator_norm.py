r"""In several dimensions the largest singular value decides the exponent.

Solid curves are local slopes of the exact query-averaged error for five spectra of $\Gamma^{1/2}U\Gamma_q^{1/2}$. The
label at the start of a curve lists its singular values, and the colour shows the largest. Dashed lines are the limits
$\beta$. The table also has the prediction $\beta-m/(2\ln L)$ with the multiplicity $m$ of the largest. Four spectra
have the largest singular value 1 and the same limit $\beta(1)$, although their Frobenius norms range from 1 to
$\sqrt8$; a second singular value of one half has an effect at short lengths only.

Alt: Line chart of local slope against logarithm of length. Four solid curves of different spectra merge towards 0.618,
the eight-dimensional one slowest; a fifth, with a larger singular value, goes to 0.366.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.sharp_rates.parameters import NEXT_TERM, READ_AT
from chapters.sharp_rates.query_averages import exponent
from chapters.sharp_rates.slopes import Spectrum
from chapters.sharp_rates.style import slope_axes
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, markers


def numbers(spectra: Mapping[str, Spectrum]) -> Numbers:
    """Return slopes by spectrum with the predictions from operator and Frobenius norm, and the claim on the former."""
    groups = []
    for name, spectrum in spectra.items():
        values, largest = spectrum.values, max(spectrum.values)
        groups.append(
            {
                "spectrum": name,
                "log_length": spectrum.log_lengths,
                "slope": spectrum.slope,
                "operator": float(exponent(largest**2)),
                "predicted": exponent(largest**2) - values.count(largest) / (2 * spectrum.log_lengths),
                "frobenius": float(exponent(sum(value**2 for value in values))),
            }
        )
    columns = {
        "spectrum": Column("Singular values of $Γ^{1/2} U Γ_q^{1/2}$", "list"),
        "log_length": Column("$ln L$"),
        "slope": Column("Exact $-d ln(\\mathrm{error})/d ln L$, averaged over queries"),
        "operator": Column("$β$ of the operator norm, the largest singular value"),
        "predicted": Column("$β - m/(2 ln L)$, $m$ the multiplicity of the largest singular value [heuristic]"),
        "frobenius": Column("$β$ of the Frobenius norm"),
    }
    table = Table.of(groups, columns)
    read = table.frame[table.frame["log_length"] == READ_AT]
    corrected = read["slope"] + (read["operator"] - read["predicted"])
    claim = Claims("sharp-rates", source="heuristic", box="multiple-singular-values")
    claim.at_most(
        "operator-norm",
        f"The operator norm decides the exponent: at $ln L = {READ_AT:g}$ the slopes of {len(read)} spectra, in "
        "one to eight dimensions, are $β - m/(2 ln L)$, with $β$ for the largest singular value and its "
        "multiplicity $m$ (measured: the largest distance).",
        (corrected - read["operator"]).abs().max(),
        0.0,
        within=(8 * NEXT_TERM) ** 2,
        because="the order after $m/(2 ln L)$, its square, at the largest multiplicity",
        rejects=("the Frobenius norm decides the exponent", (corrected - read["frobenius"]).abs().max()),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one labelled curve per spectrum, in the colour of its largest singular value, and the limits."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    spectra = list(table.groupby("spectrum", sort=False))
    colours = {level: f"C{index}" for index, level in enumerate(sorted(table["operator"].unique(), reverse=True))}
    heights = (0, -4, 4, 0, -6)  # vertical offsets of the labels
    for (spectrum, curve), marker, height in zip(spectra, markers(len(spectra)), heights, strict=True):
        colour = colours[curve["operator"].iloc[0]]
        axes.plot(curve["log_length"], curve["slope"], color=colour, marker=marker, markersize=5, linewidth=2)
        start, place = curve.iloc[0], {"xytext": (-8, height), "ha": "right"}
        label(axes, start["log_length"], start["slope"], spectrum, colour, **place)
    first, last = table["log_length"].min(), table["log_length"].max()
    for level, colour in colours.items():
        axes.plot([first, last], [level, level], color=ink(), linestyle="--", linewidth=1)
        label(axes, last, level, rf"$\beta={level:.3f}$", colour, xytext=(10, 0))
    slope_axes(axes, 0.75)
    axes.set(xlim=(first / 2.9, last * 1.05), ylim=(0.3, 0.73))
    axes.annotate("singular values", (0.01, 0.985), xycoords="axes fraction", va="top", fontsize=11, style="italic")
    return figure
