r"""For standard normal tokens the balanced head falls ever further behind linear attention as prompts grow, and a
smaller head does not.

The head with the values $V/c$ and the scores $cU$ has the same infinite prompt for every $c$. Tokens and queries are
standard normal in $d$ dimensions, the target is the query. Vertical axis: the exact error of finite prompts over that
of linear attention, $d(d+1)/L$; markers: minima.

Alt: Chart with two logarithmic axes. Solid curves fall to a common minimum at the left and rise to the right, the
higher the longer the prompts. The dashed curve goes to infinity at one half.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.preconditioned_training.finite_errors import RescaledErrors
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at
from lib.icl import best_in_the_valley

# A search knows a minimum to the square root of the accuracy of the error, 10⁻¹¹; with a reserve.
SEARCH_ERROR = 1e-5
HIGHEST = 60.0


def numbers(errors: RescaledErrors) -> Numbers:
    """Return the ratios by length and factor, with the claims on the best factor and on its error."""
    shared = {"factor": errors.factors, "limit": errors.limits}
    groups = [
        {"log_length": log_length, "ratio": ratio, "best": best, "least": least, **shared}
        for log_length, ratio, best, least in zip(
            errors.log_lengths, errors.ratios.T, errors.best, errors.least, strict=True
        )
    ]
    columns = {
        "log_length": Column("$ln L$"),
        "factor": Column("$c²$: values $V/c$, scores $cU$"),
        "ratio": Column("Exact error over that of linear attention, averaged over queries"),
        "limit": Column("The limit of long prompts; empty from $c² = ½$ on, where it is infinite"),
        "best": Column("The best $c²$ at this length", absolute=SEARCH_ERROR),
        "least": Column("The ratio at the best $c²$"),
    }
    claim = Claims("preconditioned-training", source="derived here", box="rescaled-heads")
    setting = f"In {errors.dimension} dimensions and at $ln L = {errors.log_lengths[-1]:g}$"
    claim.equal(
        "best-factor",
        f"{setting}, the best factor $c²$ is that of the limit of long prompts (measured: the best $c²$).",
        errors.best[-1],
        errors.best_of_limit,
        within=SEARCH_ERROR,
        because="a search knows a minimum to the root of the accuracy 10⁻¹¹ of the error, with a reserve of three",
        rejects=("the best factor is $1/d$, as in high dimension", 1 / errors.dimension),
    )
    claim.equal(
        "price",
        f"{setting}, the best rescaled head has the error of linear attention times the price of one head (measured: "
        "the ratio).",
        errors.least[-1],
        best_in_the_valley(errors.dimension).price,
        within=1e-9,
        because="the relative accuracy of $P$ and $Q$, with a reserve for the length",
        rejects=("the price is $e$, as in high dimension", np.e),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per length with its minimum, the limit and the balanced optimum."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    # longer prompts are drawn as their limit
    for log_length, rows, colour in coloured_rows(table[table["log_length"] < 20], "log_length"):
        axes.plot(rows["factor"], rows["ratio"], color=colour, linewidth=2)
        axes.plot(rows["best"].iloc[0], rows["least"].iloc[0], "o", color=colour, markersize=7)
        low = rows[rows["ratio"] < 0.45 * HIGHEST].iloc[-1]
        shift = (8, 0) if low["factor"] == rows["factor"].max() else (5, -6)
        name = rf"$\ln L={log_length:g}$" if log_length == table["log_length"].min() else f"{log_length:g}"
        label(axes, low["factor"], low["ratio"], name, colour, xytext=shift)
    limit = table.drop_duplicates("factor")
    axes.plot(limit["factor"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5)
    label(axes, 0.34, 30, "limit of\nlong prompts", ink(), xytext=(-4, 0), ha="right")
    longest = table.loc[table["log_length"].idxmax()]
    text = f"lowest: {longest['least']:.1f} times,\nat $c^2={longest['best']:.3f}$"
    label(axes, longest["best"], longest["least"], text, ink(), xytext=(-6, -26), ha="right")
    axes.axvline(0.5, color=ink(), linestyle=":", linewidth=1)
    axes.axvline(1.0, color=ink(), linestyle="-", linewidth=1)
    label(axes, 1.0, 2.5, "balanced\noptimum", ink(), xytext=(8, 0))
    label(axes, 0.5, 2.15, "from here on the\nlimit is infinite", ink(), xytext=(-6, 0), ha="right")
    axes.set(xscale="log", yscale="log", ylim=(1.7, HIGHEST), xlim=(table["factor"].min(), 1.0))
    axes.set(xlabel=r"squared factor of the scores, $c^2$", ylabel="error over that of linear attention")
    ticks_at(axes.xaxis, [0.02, 0.05, 0.1, 0.2, 0.5, 1])
    ticks_at(axes.yaxis, [2, 3, 5, 10, 20, 50])
    return figure
