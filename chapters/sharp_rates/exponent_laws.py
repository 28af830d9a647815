r"""One exponent against the size of the head, and what it must not be confused with.

Points: local slope of the exact query-averaged mean square error at a length far beyond simulation. Solid:
$\beta(H)$, which is 1 up to $H^2=\frac12$ and $\frac12(\sqrt{1+4/H^2}-1)$ beyond. Dashed: the form $c_2/\sigma^2$
of Prop. 3.1 with the constant that is sharp for large $H$. Dotted: $1/(1+H^2)$, twice the exponent of [TSC], which
measures another error (see the text).

Alt: Log-log chart of exponents against H squared. Exact points follow a solid curve, flat at one and then falling
like one over H squared; a dashed line joins it from above, a dotted curve runs below it and joins it at the
right.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.sharp_rates.marks import SIZE
from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import ErrorTable, exponent, radial_density
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink


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
    at_one = there.slope(radial_density(errors.taus, 1.0, 1), 1).item()
    return SlopesByNorm(squared, np.asarray(slopes), at_one)


def numbers(slopes: SlopesByNorm) -> Numbers:
    """The slopes beside the law, and the two exponents it is compared with; the golden ratio at H = 1."""
    return Numbers(_table(slopes), (_law_claim(slopes),))


def _table(slopes: SlopesByNorm) -> Table:
    """The slope at ln L = READ_AT against H², the law, and the two exponents it is compared with."""
    squared = slopes.squared_norms
    frame = pd.DataFrame(
        {
            "log_length": READ_AT,
            "squared_norm": squared,
            "slope": slopes.slope,
            "exponent": exponent(squared),
            "inverse": np.minimum(1 / squared, 1.0),
            "token_complexity": 1 / (1 + squared),
        }
    )
    columns = {
        "log_length": Column("ln L, where the slope is read"),
        "squared_norm": Column("H² = ‖Γ^{1/2} U Γ_q^{1/2}‖²_op"),
        "slope": Column("Local slope of the query-averaged mean square error there, exact"),
        "exponent": Column("β(H) [heuristic]"),
        "inverse": Column("1/H², the form c₂/σ² of Prop. 3.1 with the constant that is sharp for large H; at most 1"),
        "token_complexity": Column(
            "1/(1 + H²): twice the exponent 1/(2(1 + H²)) that [TSC] gives for the error of output moments, not squared"
        ),
    }
    return Table(frame, columns)


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
        tolerance=0.005,
        alternative=Alternative("the exponent of output moments, 1/(1 + H²)", 0.5),
    )


def draw(table: pd.DataFrame) -> Figure:
    """The law, the exact slopes, and the two exponents beside it."""
    figure, axes = plt.subplots(figsize=SIZE)
    exact = rf"exact, $\ln L={table['log_length'].iloc[0]:g}$"
    axes.plot(table["squared_norm"], table["exponent"], linewidth=2, color="C0", label=r"$\beta(H)$, heuristic")
    axes.plot(table["squared_norm"], table["slope"], "o", color="C1", markersize=5, label=exact)
    axes.plot(table["squared_norm"], table["inverse"], "--", color=ink(), linewidth=1.3, label=r"$\min(1,1/H^2)$")
    axes.plot(
        table["squared_norm"], table["token_complexity"], ":", color="C2", linewidth=2, label=r"$1/(1+H^2)$, [TSC]"
    )
    axes.set(xscale="log", yscale="log", xlabel=r"$H^2$", ylabel="exponent of the mean square error")
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set_yticks([0.1, 0.2, 0.5, 1], labels=["0.1", "0.2", "0.5", "1"])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    return figure
