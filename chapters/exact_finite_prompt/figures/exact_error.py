r"""The error of a finite prompt: exact, simulated, and its large-$L$ form.

Mean square distance between the outputs of a prompt of $L$ tokens and of the infinite one, against $L$, at several
query sizes $\tau$. Lines: exact. Points: simulated prompts with two standard errors (bars, mostly smaller than
the point). Dotted: the large-$L$ form $e^{\tau^2}(\mathrm{tr}\,V\Gamma V^\top+\|V\Gamma\xi\|^2)/L$ of the delta
method, which sets in only beyond $\ln L\approx\frac32\tau^2$, for large queries later than any simulation.

Alt: Log-log line chart of error against length. For each query size a solid curve starts flat and bends into a
straight dotted line of slope minus one, later for larger queries. Points of simulated prompts lie on the solid
curves, at lengths far shorter than where the largest queries bend.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.style import SIZE
from chapters.exact_finite_prompt.theory_comparison import ErrorsBySize
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import (
    error_bars,
    headline,
    label,
    legend_line,
    legend_point,
    legend_with,
    markers,
    sequence,
)
from lib.statistics import comparison_quantile, standard_error


def numbers(errors: Sequence[ErrorsBySize]) -> Numbers:
    """Exact, simulated and large-L error; simulation agrees with the exact one."""
    table = _table(errors)
    return Numbers(table, (_error_claim(table.frame),))


def _table(errors: Sequence[ErrorsBySize]) -> Table:
    """Error against length, by query size."""
    frame = pd.concat([_frame(these) for these in errors], ignore_index=True)
    columns = {
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "log_length": Column("ln L"),
        "exact": Column("Mean square distance between the outputs of finite and infinite prompt, exact"),
        "delta_method": Column("tr(fluctuation)/L = e^{τ²}(tr VΓVᵀ + ‖VΓξ‖²)/L, its form for L → ∞"),
        "prompts": Column("Independent prompts simulated, where there are any", "prompts"),
        "simulated": Column("Their mean square error", std_error="std_error"),
        "std_error": Column("Its standard error", moves_with="simulated"),
    }
    return Table(frame.reindex(columns=list(columns)).sort_values(["tau", "log_length"], ignore_index=True), columns)


def _frame(errors: ErrorsBySize) -> pd.DataFrame:
    """The grid, then the simulated lengths."""
    grid = pd.DataFrame({"tau": errors.tau, "log_length": errors.log_lengths, "exact": errors.exact})
    points = pd.DataFrame(
        {
            "tau": errors.tau,
            "log_length": errors.simulated_log_lengths,
            "exact": errors.exact_there,
            "prompts": [len(these) for these in errors.squares],
            "simulated": [these.mean() for these in errors.squares],
            "std_error": [float(standard_error(these)) for these in errors.squares],
        }
    )
    frame = pd.concat([grid, points], ignore_index=True)
    return frame.assign(delta_method=errors.noise * np.exp(-frame["log_length"]))


def _error_claim(frame: pd.DataFrame) -> Claim:
    """The worst deviation of simulation from the exact error, in standard errors."""
    seen = frame.dropna(subset=["simulated"])

    def worst(column: str) -> float:
        return float(np.max(np.abs(seen["simulated"] - seen[column]) / seen["std_error"]))

    return Claim(
        id="exact-finite-prompt-error",
        statement=(
            f"At {len(seen)} pairs of query size and length, the mean square error of simulated prompts equals the "
            "exact one: the worst deviation in standard errors."
        ),
        source="derived here",
        box="output-error",
        measured=worst("exact"),
        expected=0.0,
        tolerance=comparison_quantile(len(seen)),
        alternative=Alternative("the large-L form at every length", worst("delta_method")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Exact and large-L curves of each query size, simulated points on them."""
    figure, axes = plt.subplots(figsize=SIZE)
    axes.set(xscale="log", yscale="log", ylim=(table["exact"].min() / 2, 3 * table["exact"].max()))
    axes.set(xlabel="prompt length $L$", ylabel="mean square error")
    taus = sorted(table["tau"].unique().tolist())
    for tau, colour, marker in zip(taus, sequence(len(taus)), markers(len(taus)), strict=True):
        curve = table[table["tau"] == tau]
        length = np.exp(curve["log_length"])
        axes.plot(length, curve["exact"], color=colour, linewidth=2)
        axes.plot(length, curve["delta_method"], color=colour, linewidth=1.2, linestyle=":")
        error_bars(axes, length, curve["simulated"], curve["std_error"], color=colour, marker=marker)
        label(axes, length.max(), curve["exact"].iloc[-1], rf"$\tau={tau:g}$", colour)
    lines = {"exact": legend_line("-"), "large $L$": legend_line(":", 1.2), "simulated": legend_point()}
    legend_with(axes, lines, loc="lower left")
    headline(figure, "The error eventually falls like 1/L, later for larger queries")
    return figure
