r"""The error at a balanced optimum of size one falls about like $L^{-0.618}$; with smaller scores and larger values
like $1/L$.

The local slope $-\,d\ln(\text{error})/d\ln L$ of the exact mean square error, averaged over queries. Solid: the
balanced optimum, whose size is $H=1$, for several condition numbers of $\Sigma$. Dashed: the same head with smaller
scores and larger values, which has the same infinite prompt. Horizontal lines are the limits.

Tokens and queries are $\mathcal N(0,\Sigma)$ in the plane, $\Sigma$ has the largest eigenvalue 1, and the target is the
query itself. The error is the distance from the output of the infinite prompt, which is the target. The limit of the
solid curves is $\beta(1)$, the inverse golden ratio, by a heuristic; that of the dashed curves is a theorem.

Alt: Chart of slopes against the logarithm of the prompt length. Three dashed curves rise quickly to one and stay there.
Three solid curves stay near 0.6, dip slightly, and approach a horizontal line at 0.618 from below.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.preconditioned_training.finite_errors import READ_AT, Optimum
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at
from lib.finite_prompt import rate_exponent


def numbers(optima: Sequence[Optimum]) -> Numbers:
    """Return both slopes by condition number and length, with the claims on the balanced and the rescaled head."""
    golden = float(rate_exponent(1.0))
    groups = [
        {
            "condition": each.condition,
            "factor": each.factor,
            "log_length": each.log_lengths,
            "balanced": each.balanced_slope,
            "rescaled": each.rescaled_slope,
            "exponent": golden,
        }
        for each in optima
    ]
    columns = {
        "condition": Column("Condition number of $Σ$, whose largest eigenvalue is 1"),
        "factor": Column("$c²$, by which the dashed heads are rescaled: values $V/c$, scores $cU$"),
        "log_length": Column("$ln L$"),
        "balanced": Column("Exact $-d ln(\\mathrm{error})/d ln L$ at the balanced optimum, averaged over queries"),
        "rescaled": Column("The same for the rescaled head"),
        "exponent": Column("$β(1)$, the limit of the slope at the balanced optimum [heuristic]"),
    }
    claim = Claims("preconditioned-training")
    slopes = np.array([each.balanced_slope[each.log_lengths == READ_AT][0] for each in optima])
    claim.equal(
        "golden",
        f"At {len(optima)} condition numbers and $ln L = {READ_AT:g}$ the error of the balanced optimum falls like $L$ "
        "to the power minus the inverse golden ratio (measured: the largest distance of the local slope).",
        np.abs(slopes - golden).max(),
        0.0,
        within=2 * max(each.multiplicity for each in optima) / (2 * READ_AT),
        because="twice the next term of the heuristic, $m/(2 ln L)$ for an $m$-fold largest singular value",
        source="heuristic",
        box="average-exponent",
        comparisons=len(optima),
        rejects=("the exponent is 1, as at every fixed query", np.abs(slopes - 1).max()),
    )
    scaled = np.array([each.rescaled_scaled[each.log_lengths == READ_AT][0] for each in optima])
    unshifted = np.array([each.unshifted for each in optima])
    claim.equal(
        "rescaled",
        f"At {len(optima)} condition numbers, with $c² = {optima[0].factor:g}$, $L$ times the error tends to the mean "
        f"of the fluctuation (measured: the largest relative difference at $ln L = {READ_AT:g}$).",
        np.abs(scaled - 1).max(),
        0.0,
        within=1e-9,
        because="the relative accuracy of $P$ and $Q$; large queries add only $L$ to the power $-(√(1 + 4/H²) - 3)/2$, "
        "which is below $e^{-40}$",
        source="derived here",
        box="rescaled-heads",
        comparisons=len(optima),
        rejects=("tokens of large weight have the mean of the infinite prompt", np.abs(scaled - unshifted).max()),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw both slopes against ln L, one colour per condition number, with their limits."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    first, last = table["log_length"].min(), table["log_length"].max()
    for condition, rows, colour in coloured_rows(table, "condition"):
        look = {"color": colour, "markersize": 4.5, "linewidth": 2}
        axes.plot(rows["log_length"], rows["balanced"], "o-", label=f"condition number {condition:g}", **look)
        axes.plot(rows["log_length"], rows["rescaled"], "o--", **look)
    golden = table["exponent"].iloc[0]
    for level, text in ((golden, f"limit {golden:.3f},\nheuristic"), (1.0, "limit 1,\na theorem")):
        axes.plot([first, last], [level, level], color=ink(), linestyle=":", linewidth=1.2)
        label(axes, last, level, text, ink(), xytext=(8, 0))
    axes.annotate("smaller scores, larger values", (20, 0.97), va="top", fontweight="bold")
    axes.annotate("balanced optimum", (20, 0.64), va="bottom", fontweight="bold")
    axes.legend(loc="center", bbox_to_anchor=(0.4, 0.57))
    axes.set(xscale="log", xlabel=r"$\ln L$", ylabel="exponent of the error (local slope)", ylim=(0.5, 1.05))
    ticks_at(axes.xaxis, [5, 10, 20, 50, 100, 200, 330])
    return figure
