r"""One exponent against the size of the head, and what it must not be confused with.

Points: local slope of the exact query-averaged mean square error at a length far beyond simulation. Solid:
$\beta(H)$, which is 1 up to $H^2=\frac12$ and $\frac12(\sqrt{1+4/H^2}-1)$ beyond. Dashed: the form $c_2/\sigma^2$
of Prop. 3.1 for $U=I$, at $\sigma=H\ge1$, with $c_2=\beta(1)$. No constant for all $\sigma\ge1$ can be larger: the
dashed line touches $\beta$ at $\sigma=1$ and stays below it for $\sigma>1$. Dotted: $1/(1+H^2)$, twice the exponent of
[TSC], which measures another error (see the text).

Alt: Log-log chart of exponents against H squared. Exact points follow a solid curve, flat at one, then falling like
one over H squared. A dashed line starts on it at one and runs below it; a dotted curve below joins it at the right.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.sharp_rates.averaged_errors import AveragedErrors, claims_of
from chapters.sharp_rates.parameters import NEXT_TERM, READ_AT
from chapters.sharp_rates.query_averages import ErrorTable, exponent, radial_density
from chapters.sharp_rates.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label


@dataclass(frozen=True)
class SlopesByNorm:
    """Local slope of the query-averaged error of one coordinate at ln L = READ_AT, along H² and at H = 1."""

    squared_norms: Float[np.ndarray, " norms"]
    slope: Float[np.ndarray, " norms"]
    at_one: float


def read_slopes(errors: ErrorTable, norms: int) -> SlopesByNorm:
    """The slope at ln L = READ_AT against H², from 1/8 to 8, and at H = 1."""
    squared = np.geomspace(1 / 8, 8.0, norms)
    there = errors.at_length(READ_AT)
    slopes = [there.slope(radial_density(errors.taus, np.sqrt(h), 1), 1).item() for h in squared]
    return SlopesByNorm(squared, np.asarray(slopes), there.slope(radial_density(errors.taus, 1.0, 1), 1).item())


def numbers(slopes: SlopesByNorm, averages: AveragedErrors) -> Numbers:
    """The slopes, their limit and two exponents to compare; claims on H = 1, on the constant c₂ and on small heads."""
    return Numbers(_table(slopes), (_law_claim(slopes), _constant_claim(slopes), *claims_of(averages)))


def _table(slopes: SlopesByNorm) -> Table:
    """The slope at ln L = READ_AT against H², the law, and the two exponents it is compared with."""
    squared = slopes.squared_norms
    frame = pd.DataFrame(
        {
            "log_length": READ_AT,
            "squared_norm": squared,
            "slope": slopes.slope,
            "exponent": exponent(squared),
            "bound": np.where(_bounded(squared), exponent(1.0) / squared, np.nan),
            "token_complexity": 1 / (1 + squared),
        }
    )
    columns = {
        "log_length": Column("ln L, where the slope is read"),
        "squared_norm": Column("H² = ‖Γ^{1/2} U Γ_q^{1/2}‖²_op"),
        "slope": Column("Local slope of the query-averaged mean square error there, exact"),
        "exponent": Column("β(H) [heuristic]"),
        "bound": Column("c₂/σ² of Prop. 3.1 with c₂ = β(1), at σ = H ≥ 1; empty below"),
        "token_complexity": Column(
            "1/(1 + H²): twice the exponent 1/(2(1 + H²)) that [TSC] gives for the error of output moments, not squared"
        ),
    }
    return Table(frame, columns)


def _bounded(squared: Float[np.ndarray, " norms"]) -> np.ndarray:
    """Where Prop. 3.1 speaks: σ ≥ 1, up to the rounding of a grid."""
    return squared > 1 - 1e-9


def _law_claim(slopes: SlopesByNorm) -> Claim:
    """At the golden ratio: H = 1."""
    return Claim(
        id="sharp-rates-golden",
        statement=(
            f"At H = 1 the error falls like L to the power minus the inverse golden ratio, 0.618…: the local slope at "
            f"ln L = {READ_AT:g}."
        ),
        source="heuristic",
        box="average-exponent",
        measured=slopes.at_one,
        expected=(np.sqrt(5) - 1) / 2,
        tolerance=2 * NEXT_TERM,
        alternative=Alternative("the exponent of output moments, 1/(1 + H²)", 0.5),
    )


def _constant_claim(slopes: SlopesByNorm) -> Claim:
    """No σ ≥ 1 has an exponent below β(1)/σ²; some have one below 1/σ²."""
    spoken = _bounded(slopes.squared_norms)
    slope, squared = slopes.slope[spoken], slopes.squared_norms[spoken]
    return Claim(
        id="sharp-rates-one-constant",
        statement=(
            "With c₂ = β(1) the exponent c₂/σ² of Prop. 3.1 is not above the error's, for U = I, d = 1 and Gaussian "
            f"tokens and queries, {len(slope)} σ ≥ 1: the least local slope minus c₂/σ² at ln L = {READ_AT:g}."
        ),
        source="heuristic",
        box="admissible-constant",
        measured=float(np.min(slope - exponent(1.0) / squared)),
        expected=0.0,
        tolerance=2 * NEXT_TERM,
        relation="≥",
        alternative=Alternative("c₂ = 1, which is sharp for large σ", float(np.min(slope - 1 / squared))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """The law, the exact slopes, and the two exponents beside it."""
    figure, axes = plt.subplots(figsize=SIZE)
    norms, last = table["squared_norm"], table.iloc[-1]
    axes.vlines(0.5, last["bound"], 1, color=ink(), linewidth=1, alpha=0.5)
    label(axes, 0.5, last["bound"], "$H^2=½$", ink(), va="bottom")
    axes.plot(norms, table["exponent"], linewidth=2, color="C0")
    axes.plot(norms, table["slope"], "o", color="C0", markersize=6, fillstyle="none")
    law = rf"$\beta(H)$, heuristic; on it the exact slopes at $\ln L={table['log_length'].iloc[0]:g}$"
    label(axes, norms.min(), 1, law, "C0", xytext=(0, 13))
    axes.plot(norms, table["bound"], "--", color=ink(), linewidth=1.5)
    label(axes, last["squared_norm"], last["bound"], "form of\nProp. 3.1", ink(), xytext=(6, 8))
    axes.plot(norms, table["token_complexity"], ":", color="C2", linewidth=2)
    label(axes, norms.min(), table["token_complexity"].iloc[0], "$1/(1+H^2)$, [TSC]", "C2", xytext=(0, -22))
    axes.set(xscale="log", yscale="log", xlabel=r"size of the head, $H^2$", ylabel="exponent of the mean square error")
    axes.set_ylim(top=1.35)
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set_yticks([0.1, 0.2, 0.5, 1], labels=["0.1", "0.2", "0.5", "1"])
    axes.minorticks_off()
    headline(figure, "Small heads have the exponent 1; larger ones fall behind, as one formula says")
    return figure
