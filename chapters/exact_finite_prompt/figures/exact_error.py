r"""The error of a finite prompt falls like $1/L$ for long prompts, but larger queries need much longer prompts.

The error is the mean square distance between the outputs of a prompt of $L$ tokens and of the infinite prompt. Solid
lines are exact; points have bars of two standard errors. Dotted lines are the form
$e^{\tau^2}(\mathrm{tr}\,V\Gamma V^\top+\|V\Gamma\xi\|^2)/L$ of the delta method, accurate only well beyond
$\ln L\approx\frac32\tau^2$; for the largest queries the simulations stop far below these lengths.

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
    groups, from_exact, from_large = [], [], []
    for at_size in errors:
        log_lengths, exact, drawn = at_size.log_lengths, at_size.exact, at_size.simulated
        large = at_size.fluctuation_trace * np.exp(-log_lengths)
        mean, std_error = np.transpose([(squares.mean(), standard_error(squares)) for squares in at_size.squares])
        from_exact.append((mean - exact[drawn]) / std_error)
        from_large.append((mean - large[drawn]) / std_error)
        simulated = {"log_length": log_lengths[drawn], "error": mean, "std_error": std_error}
        groups += [
            {"tau": at_size.tau, "kind": "exact", "log_length": log_lengths, "error": exact},
            {"tau": at_size.tau, "kind": "large L", "log_length": log_lengths, "error": large},
            {"tau": at_size.tau, "kind": "prompts", **simulated},
        ]
    columns = {
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$"),
        "kind": Column("`exact`, simulated `prompts`, or the form of `large L`, $e^{τ²}(tr VΓVᵀ + ‖VΓξ‖²)/L$", "name"),
        "log_length": Column("$ln L$"),
        "error": Estimate("Mean square distance of the output from that of the infinite prompt", std_error="std_error"),
    }
    claim = Claims("exact-finite-prompt", source="derived here", box="output-error")
    claim.agree(
        "error",
        f"At {np.size(from_exact)} pairs of query size and length, the mean square error of simulated prompts agrees "
        "with the exact one",
        from_exact,
        rejects=("the large-L form holds at every length", from_large),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact and the large-L curve of each query size, and the simulated points."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    errors = table.loc[table["kind"] == "exact", "error"]
    axes.set(xscale="log", yscale="log", ylim=(errors.min() / 2, 3 * errors.max()))
    axes.set(xlabel="prompt length $L$", ylabel="mean square error")
    by_size = table.assign(length=np.exp(table["log_length"])).groupby("tau")
    for (tau, rows), colour, marker in coloured(by_size):
        exact, large, prompts = (rows[rows["kind"] == kind] for kind in ("exact", "large L", "prompts"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(large["length"], large["error"], color=colour, linewidth=1.2, linestyle=":")
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], color=colour, marker=marker)
        name = rf"$\tau={tau:g}$" if tau < table["tau"].max() else f"query size\n$\\tau={tau:g}$"
        label(axes, exact["length"].max(), exact["error"].iloc[-1], name, colour)
    lines = {"exact": legend_line("-"), "large $L$: slope $-1$": legend_line(":", 1.2), "simulated": legend_point()}
    legend_with(axes, lines, loc="lower left")
    return figure
