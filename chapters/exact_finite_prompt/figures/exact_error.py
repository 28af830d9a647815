r"""The error of a finite prompt falls like $1/L$ for long prompts, but larger queries need much longer prompts.

The vertical axis is the mean square distance between the outputs of a prompt of $L$ tokens and of the infinite prompt,
one curve per query size $\tau$. Solid lines are exact. Points are simulated prompts, with two standard errors (bars,
mostly smaller than the points). Dotted lines are the large-$L$ form $e^{\tau^2}(\mathrm{tr}\,V\Gamma
V^\top+\|V\Gamma\xi\|^2)/L$ of the delta method. It is accurate only well beyond $\ln L\approx\frac32\tau^2$; for large
queries no simulation reaches these lengths.

Alt: Log-log line chart of error against length. One solid curve for each query size bends into a straight
dotted line of slope minus one, at longer lengths for larger queries, whose curves start flatter. Points of
simulated prompts are on the solid curves, at lengths far shorter than where the curves of the largest queries bend.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.output_errors import ErrorsBySize
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, label, legend_line, legend_point, legend_with
from lib.statistics import standard_error


def numbers(errors: Sequence[ErrorsBySize]) -> Numbers:
    """Return exact, simulated and large-L errors, and the claim that simulated and exact errors agree."""
    frame = pd.concat([_frame(by_size) for by_size in errors]).sort_values(["tau", "log_length"], ignore_index=True)
    columns = {
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$"),
        "log_length": Column("$ln L$"),
        "exact": Column("Exact mean square distance between the outputs of the finite and the infinite prompt"),
        "delta_method": Column("tr(fluctuation)$/L = e^{τ²}(tr VΓVᵀ + ‖VΓξ‖²)/L$, the error for $L → ∞$"),
        "prompts": Column("Number of simulated prompts; empty where none is simulated", "prompts"),
        "simulated": Estimate("Mean square error of the simulated prompts", std_error="std_error"),
    }
    simulated = frame.dropna(subset=["simulated"])
    claim = Claims("exact-finite-prompt", source="derived here", box="output-error")
    claim.agree(
        "error",
        f"At {len(simulated)} pairs of query size and length, the mean square error of simulated prompts agrees "
        "with the exact one",
        (simulated["simulated"] - simulated["exact"]) / simulated["std_error"],
        rejects=(
            "the large-L form holds at every length",
            (simulated["simulated"] - simulated["delta_method"]) / simulated["std_error"],
        ),
    )
    return Numbers(Table.of([frame], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact and the large-L curve of each query size, and the simulated points."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", ylim=(table["exact"].min() / 2, 3 * table["exact"].max()))
    axes.set(xlabel="prompt length $L$", ylabel="mean square error")
    taus = sorted(table["tau"].unique().tolist())
    for tau, colour, marker in coloured(taus):
        curve = table[table["tau"] == tau]
        length = np.exp(curve["log_length"])
        axes.plot(length, curve["exact"], color=colour, linewidth=2)
        axes.plot(length, curve["delta_method"], color=colour, linewidth=1.2, linestyle=":")
        error_bars(axes, length, curve["simulated"], curve["std_error"], color=colour, marker=marker)
        label(axes, length.max(), curve["exact"].iloc[-1], rf"$\tau={tau:g}$", colour)
    lines = {"exact": legend_line("-"), "large $L$": legend_line(":", 1.2), "simulated": legend_point()}
    legend_with(axes, lines, loc="lower left")
    return figure


def _frame(errors: ErrorsBySize) -> pd.DataFrame:
    """Return the rows of one query size: the grid of lengths, then the simulated lengths."""
    grid = pd.DataFrame({"log_length": errors.log_lengths, "exact": errors.exact})
    points = pd.DataFrame({"log_length": errors.simulated_log_lengths, "exact": errors.exact_at_simulated})
    points["prompts"] = [len(squares) for squares in errors.squares]
    points["simulated"] = [squares.mean() for squares in errors.squares]
    points["std_error"] = [standard_error(squares) for squares in errors.squares]
    frame = pd.concat([grid, points], ignore_index=True)
    return frame.assign(tau=errors.tau, delta_method=errors.fluctuation_trace * np.exp(-frame["log_length"]))
