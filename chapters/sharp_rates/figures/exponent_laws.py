r"""The error of small heads falls with exponent 1, and the error of larger heads with a smaller exponent $\beta(H)$.

Points are local slopes of the exact query-averaged mean square error at a length far beyond simulation. The solid curve
is $\beta(H)$: 1 for $H^2\le\frac12$ and, by a heuristic, $\frac12(\sqrt{1+4/H^2}-1)$ beyond. The dashed line is the
form $c_2/\sigma^2$ of Prop. 3.1 for $U=I$, at $\sigma=H\ge1$, with $c_2=\beta(1)$. It meets $\beta$ at $\sigma=1$ and
is below it for $\sigma>1$, so no larger constant is valid for all $\sigma\ge1$. The dotted curve is $1/(1+H^2)$, twice
the exponent of [TSC], which describes a different error.

Alt: Log-log chart of exponents against H squared. Exact points follow a solid curve, flat at one, then falling like
one over H squared. A dashed line starts on it at one and runs below it; a dotted curve below joins it at the right.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.sharp_rates.averaged_errors import AveragedErrors, make_claims
from chapters.sharp_rates.parameters import NEXT_TERM, READ_AT
from chapters.sharp_rates.query_averages import ErrorTable, exponent, radial_density
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label


@dataclass(frozen=True)
class SlopesByNorm:
    """Local slope of the query-averaged error of one coordinate at ln L = READ_AT, as a function of H² and at H = 1."""

    squared_norms: Float[np.ndarray, " norms"]
    slope: Float[np.ndarray, " norms"]
    at_one: float


def solve_slopes(errors: ErrorTable, norms: int) -> SlopesByNorm:
    """Return the slopes at ln L = READ_AT, for H² from 1/8 to 8 and for H = 1."""
    squared = np.geomspace(1 / 8, 8.0, norms)
    table = errors.at_length(READ_AT)
    slopes = [table.slope(radial_density(errors.taus, np.sqrt(h), 1), 1).item() for h in squared]
    return SlopesByNorm(squared, np.asarray(slopes), table.slope(radial_density(errors.taus, 1.0, 1), 1).item())


def numbers(slopes: SlopesByNorm, averages: AveragedErrors) -> Numbers:
    """Return the slopes, their limit and two other exponents; claims on H = 1, the constant c₂ and small heads."""
    return Numbers(_table(slopes), (_golden_claim(slopes), _constant_claim(slopes), *make_claims(averages)))


def _table(slopes: SlopesByNorm) -> Table:
    """Return the table of slopes at ln L = READ_AT by H², their limit and the two other exponents."""
    squared = slopes.squared_norms
    frame = pd.DataFrame(
        {
            "log_length": READ_AT,
            "squared_norm": squared,
            "slope": slopes.slope,
            "exponent": exponent(squared),
            "bound": np.where(_bound_applies(squared), exponent(1.0) / squared, np.nan),
            "token_complexity": 1 / (1 + squared),
        }
    )
    columns = {
        "log_length": Column("$ln L$ at which the slope is read"),
        "squared_norm": Column("$H² = ‖Γ^{1/2} U Γ_q^{1/2}‖_{\\mathrm{op}}²$"),
        "slope": Column("Exact local slope of the query-averaged mean square error at this length"),
        "exponent": Column("$β(H)$ [heuristic]"),
        "bound": Column("$c₂/σ²$ of Prop. 3.1 with $c₂ = β(1)$, at $σ = H ≥ 1$; empty for $H < 1$"),
        "token_complexity": Column(
            "$1/(1 + H²)$: twice the exponent $1/(2(1 + H²))$ that [TSC] gives for the error of output moments, "
            "not squared"
        ),
    }
    return Table(frame, columns)


def _bound_applies(squared: Float[np.ndarray, " norms"]) -> np.ndarray:
    """Return whether Prop. 3.1 applies: σ ≥ 1, within the rounding of the grid."""
    return squared > 1 - 1e-9


def _golden_claim(slopes: SlopesByNorm) -> Claim:
    """Claim that at H = 1 the slope is the inverse golden ratio."""
    return Claim(
        id="sharp-rates-golden",
        statement=(
            "At $H = 1$ the error falls like $L$ to the power minus the inverse golden ratio, 0.618… (measured: the "
            f"local slope at $ln L = {READ_AT:g}$)."
        ),
        source="heuristic",
        box="average-exponent",
        measured=slopes.at_one,
        expected=(np.sqrt(5) - 1) / 2,
        tolerance=2 * NEXT_TERM,
        reason="twice the next term of the heuristic, $1/(2 ln L)$",
        alternative=Alternative("the exponent is the one of output moments, $1/(1 + H²)$", 0.5),
    )


def _constant_claim(slopes: SlopesByNorm) -> Claim:
    """Claim that no σ ≥ 1 has an exponent below β(1)/σ²; some have an exponent below 1/σ²."""
    applies = _bound_applies(slopes.squared_norms)
    slope, squared = slopes.slope[applies], slopes.squared_norms[applies]
    return Claim(
        id="sharp-rates-one-constant",
        statement=(
            "With $c₂ = β(1)$ the exponent $c₂/σ²$ of Prop. 3.1 is not larger than the exponent of the error, for "
            f"$U = I$, $d = 1$, Gaussian tokens and queries, and {len(slope)} scales $σ ≥ 1$ (measured: the smallest "
            f"difference between local slope and $c₂/σ²$ at $ln L = {READ_AT:g}$)."
        ),
        source="heuristic",
        box="admissible-constant",
        measured=float(np.min(slope - exponent(1.0) / squared)),
        expected=0.0,
        tolerance=2 * NEXT_TERM,
        reason="twice the next term of the heuristic, $1/(2 ln L)$",
        relation="≥",
        alternative=Alternative(
            "the constant is $c₂ = 1$, which is sharp for large $σ$", float(np.min(slope - 1 / squared))
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw β(H), the exact slopes and the two other exponents."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    norms, last = table["squared_norm"], table.iloc[-1]
    axes.vlines(0.5, last["bound"], 1, color=ink(), linewidth=1, alpha=0.5)
    label(axes, 0.5, last["bound"], "$H^2=½$", ink(), va="bottom")
    axes.plot(norms, table["exponent"], linewidth=2, color="C0")
    axes.plot(norms, table["slope"], "o", color="C0", markersize=6, fillstyle="none")
    curve = rf"$\beta(H)$, heuristic; points: exact slopes at $\ln L={table['log_length'].iloc[0]:g}$"
    label(axes, norms.min(), 1, curve, "C0", xytext=(0, 13))
    axes.plot(norms, table["bound"], "--", color=ink(), linewidth=1.5)
    label(axes, last["squared_norm"], last["bound"], "form of\nProp. 3.1", ink(), xytext=(6, 8))
    axes.plot(norms, table["token_complexity"], ":", color="C2", linewidth=2)
    label(axes, norms.min(), table["token_complexity"].iloc[0], "$1/(1+H^2)$, [TSC]", "C2", xytext=(0, -22))
    axes.set(xscale="log", yscale="log", xlabel=r"size of the head, $H^2$", ylabel="exponent of the mean square error")
    axes.set_ylim(top=1.35)
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set_yticks([0.1, 0.2, 0.5, 1], labels=["0.1", "0.2", "0.5", "1"])
    axes.minorticks_off()
    return figure
