r"""The local slope of the error of large heads approaches its exponent only at lengths beyond simulations.

Solid curves are exact slopes $-\,d\ln\text{error}/d\ln L$ of the mean square error averaged over standard normal
queries, one for each $H^2$. Dashed lines are the limits $\beta(H)$ (heuristic for $H^2\ge\frac12$). Shaded are the
lengths of prompts that have been simulated, until $\ln L\approx 16$: for $H^2\geq2$ an exponent fitted there is not
$\beta(H)$.

Alt: Line chart of local slope against logarithm of length. Solid curves, one for each size of the head, settle on
dashed levels, which are lower for larger heads. At the left, where simulations end, the two lowest curves are still
away from their levels.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.sharp_rates.parameters import NEXT_TERM, READ_AT
from chapters.sharp_rates.query_averages import exponent
from chapters.sharp_rates.slopes import Slopes
from chapters.sharp_rates.style import slope_axes
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, legend_line

# ln L of the largest simulated prompts.
SIMULATED = 16


def numbers(slopes: Mapping[float, Slopes]) -> Numbers:
    """Return slopes and limits, and the claim that they agree at ln L = READ_AT."""
    groups = [
        {
            "squared_norm": squared,
            "log_length": head.log_lengths,
            "slope": head.slope,
            "exponent": float(exponent(squared)),
        }
        for squared, head in slopes.items()
    ]
    columns = {
        "squared_norm": Column("$H² = ‖Γ^{1/2} U Γ_q^{1/2}‖_{\\mathrm{op}}²$"),
        "log_length": Column("$ln L$"),
        "slope": Column("Exact $-d ln(\\mathrm{error})/d ln L$ of the mean square error averaged over queries"),
        "exponent": Column("$β(H)$, the limit of the slope by the heuristic"),
    }
    table = Table.of(groups, columns)
    read = table.frame[table.frame["log_length"] == READ_AT]
    claim = Claims("sharp-rates", source="heuristic", box="average-exponent")
    claim.at_most(
        "slopes",
        f"At $ln L = {READ_AT:g}$ the local slopes of the query-averaged error are $β(H)$, for "
        f"$H² = {', '.join(f'{squared:g}' for squared in slopes)}$ (measured: the largest distance).",
        (read["slope"] - read["exponent"]).abs().max(),
        0.0,
        within=2 * NEXT_TERM,
        because="twice the next term of the heuristic, $1/(2 ln L)$",
        rejects=("the exponent is 1 for every head, as in the delta method", (read["slope"] - 1.0).abs().max()),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per head, and its limit."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    start, end = table["log_length"].min(), table["log_length"].max()
    axes.axvspan(start / 1.2, SIMULATED, color=ink(), alpha=0.08, linewidth=0)
    label(axes, start / 1.2, 0.09, "simulated lengths", ink(), xytext=(6, 0))
    for squared, curve, colour in coloured_rows(table, "squared_norm"):
        level = curve["exponent"].max()
        axes.plot([start, end], [level, level], color=colour, linestyle="--", linewidth=1.2)
        axes.plot(curve["log_length"], curve["slope"], color=colour, marker="o", markersize=4.5, linewidth=2)
        label(axes, end, level, rf"$H^2={squared:g}$: $\beta={level:.3f}$", colour, xytext=(10, 0))
    slope_axes(axes, 1.1)
    axes.set_ylabel("exponent of the error (local slope)")
    label(axes, end, 0.84, r"size of the head, $H^2$," + "\n" + r"and limit $\beta(H)$", ink(), xytext=(10, 0))
    axes.set_xlim(start / 1.2, 1.06 * end)
    lines = {"exact": legend_line("-"), r"limit $\beta(H)$, heuristic": legend_line("--", 1.2)}
    axes.legend(list(lines.values()), list(lines), loc="center", bbox_to_anchor=(0.62, 0.75))
    return figure
