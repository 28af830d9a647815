r"""In several dimensions the largest singular value decides the exponent.

Solid curves are local slopes of the exact query-averaged error for five spectra of $\Gamma^{1/2}U\Gamma_q^{1/2}$. The
label at the start of a curve lists its singular values, and the colour shows the largest. Dashed lines are the limits
$\beta$. The table also has the prediction $\beta-m/(2\ln L)$ with the multiplicity $m$ of the largest. Four spectra
have the largest singular value 1 and the same limit $\beta(1)$, although their Frobenius norms range from 1 to
$\sqrt8$; a second singular value of one half has an effect at short lengths only. The grey tick on the
axis is the longest prompt of {doc}`real_heads`.

Alt: Line chart of local slope against logarithm of length. Four solid curves of different spectra merge towards 0.618,
the eight-dimensional one slowest; a fifth, with a larger singular value, goes to 0.366.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.sharp_rates.parameters import NEXT_TERM, READ_AT
from chapters.sharp_rates.query_averages import ErrorTable, exponent, planar_density, radial_density
from chapters.sharp_rates.style import slope_axes
from chapters.style import mark_real_prompt
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, markers


@dataclass(frozen=True)
class Spectrum:
    """Singular values of one head, and the local slope of its query-averaged error at each length."""

    values: tuple[float, ...]
    log_lengths: Float[np.ndarray, " lengths"]
    slope: Float[np.ndarray, " lengths"]


def solve_slopes_by_spectrum(errors: ErrorTable) -> dict[str, Spectrum]:
    """Return the slopes of four heads with the largest singular value 1 and of one with a larger one."""
    spectra = {
        "(√2)": (radial_density(errors.taus, np.sqrt(2.0), 1), (np.sqrt(2.0),)),
        "(1)": (radial_density(errors.taus, 1.0, 1), (1.0,)),
        "(1, ½)": (planar_density(errors.taus, 1.0, 0.5), (1.0, 0.5)),
        "(1, 1)": (radial_density(errors.taus, 1.0, 2), (1.0, 1.0)),
        "(1, …, 1) in R⁸": (radial_density(errors.taus, 1.0, 8), (1.0,) * 8),
    }
    return {
        name: Spectrum(values, errors.log_lengths, errors.slope(density, len(values)))
        for name, (density, values) in spectra.items()
    }


def numbers(spectra: Mapping[str, Spectrum]) -> Numbers:
    """Return slopes by spectrum with the predictions from operator and Frobenius norm, and the claim on the former."""
    table = _table(spectra)
    return Numbers(table, (_spectrum_claim(table.frame),))


def _table(spectra: Mapping[str, Spectrum]) -> Table:
    """Return the table of slopes by spectrum and length."""
    frame = pd.concat([_frame(name, spectrum) for name, spectrum in spectra.items()], ignore_index=True)
    columns = {
        "spectrum": Column("Singular values of $Γ^{1/2} U Γ_q^{1/2}$", "list"),
        "log_length": Column("$ln L$"),
        "slope": Column("Exact $-d ln(\\mathrm{error})/d ln L$, averaged over queries; empty between the markers"),
        "operator": Column("$β$ of the operator norm, the largest singular value"),
        "predicted": Column("$β - m/(2 ln L)$, $m$ the multiplicity of the largest singular value [heuristic]"),
        "frobenius": Column("$β$ of the Frobenius norm"),
    }
    return Table(frame, columns)


def _frame(name: str, spectrum: Spectrum) -> pd.DataFrame:
    """Return the rows of one spectrum, on a grid that contains the computed lengths."""
    values, computed = spectrum.values, spectrum.log_lengths
    log_lengths = np.union1d(computed, np.geomspace(computed.min(), computed.max(), 60))
    return pd.DataFrame(
        {
            "spectrum": name,
            "log_length": log_lengths,
            "slope": pd.Series(spectrum.slope, computed).reindex(log_lengths).to_numpy(),
            "operator": float(exponent(max(values) ** 2)),
            "predicted": exponent(max(values) ** 2) - values.count(max(values)) / (2 * log_lengths),
            "frobenius": float(exponent(sum(value**2 for value in values))),
        }
    )


def _spectrum_claim(frame: pd.DataFrame) -> Claim:
    """Claim that the slope of each spectrum at ln L = READ_AT is β of its operator norm minus m/(2 ln L)."""
    read = frame[frame["log_length"] == READ_AT]
    correction = read["operator"] - read["predicted"]

    def worst(exponents) -> float:
        return float(np.max(np.abs(read["slope"] - exponents)))

    return Claim(
        id="sharp-rates-operator-norm",
        statement=(
            f"The operator norm decides the exponent: at $ln L = {READ_AT:g}$ the slopes of {len(read)} spectra, in "
            "one to eight dimensions, are $β - m/(2 ln L)$, with $β$ for the largest singular value and its "
            "multiplicity $m$ (measured: the largest distance)."
        ),
        source="heuristic",
        box="multiple-singular-values",
        measured=worst(read["predicted"]),
        expected=0.0,
        tolerance=(8 * NEXT_TERM) ** 2,
        reason="the order after $m/(2 ln L)$, its square, at the largest multiplicity",
        relation="≤",
        alternative=Alternative("the Frobenius norm decides the exponent", worst(read["frobenius"] - correction)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one labelled curve per spectrum, in the colour of its largest singular value, and the limits."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    spectra = list(dict.fromkeys(table["spectrum"]))
    colours = {level: f"C{index}" for index, level in enumerate(sorted(table["operator"].unique(), reverse=True))}
    offsets = dict(zip(spectra, (0, -4, 4, 0, -6), strict=False))  # vertical offsets of the labels
    for spectrum, marker in zip(spectra, markers(len(spectra)), strict=True):
        curve = table[table["spectrum"] == spectrum].sort_values("log_length")
        colour = colours[curve["operator"].iloc[0]]
        exact = curve[curve["slope"].notna()]
        axes.plot(exact["log_length"], exact["slope"], color=colour, marker=marker, markersize=5, linewidth=2)
        start, place = exact.iloc[0], {"xytext": (-8, offsets.get(spectrum, 0)), "ha": "right"}
        label(axes, start["log_length"], start["slope"], spectrum, colour, **place)
    first, last = table["log_length"].min(), table["log_length"].max()
    for level, colour in colours.items():
        axes.plot([first, last], [level, level], color=ink(), linestyle="--", linewidth=1)
        label(axes, last, level, rf"$\beta={level:.3f}$", colour, xytext=(10, 0))
    slope_axes(axes, 0.75)
    axes.set_ylim(0.3, 0.73)
    axes.set_xlim(first / 2.9, last * 1.05)
    axes.annotate("singular values", (0.01, 0.985), xycoords="axes fraction", va="top", fontsize=11, style="italic")
    mark_real_prompt(axes, log_length=True)
    return figure
