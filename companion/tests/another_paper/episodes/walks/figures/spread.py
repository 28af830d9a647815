r"""The mean square distance of a random walk is its number of steps.

Points are means over walkers; bars are two standard errors; the line is the law.

Alt: Log-log plot of the mean square distance against the number of steps, points on a rising straight line.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from companion import Claims, Column, Numbers, Table
from companion.figures.style import ink
from episodes.walks.paths import Ends

# Size of the figure and colour of the points; no number depends on them.
SIZE = (7, 4)
COLOUR = "C0"


def numbers(ends: Ends, quantile: float) -> Numbers:
    """Return one row per number of steps, with the tracked formula, and the claim."""
    law = pd.read_csv(Path(__file__).parents[1] / "data" / "laws.csv").set_index("law")["exponent"]["diffusion"]
    rows = [
        {
            "steps": n,
            "mean_square": np.mean(these**2.0),
            "std_error": np.std(these**2.0, ddof=1) / np.sqrt(len(these)),
            "law": float(n) ** law,
        }
        for n, these in ends.items()
    ]
    columns = {
        "steps": Column("Steps of the walk, n", "steps"),
        "mean_square": Column("Mean square distance from the start", std_error="std_error"),
        "std_error": Column("Its standard error", std_error="std_error"),
        "law": Column("The tracked law, n"),
    }
    table = pd.DataFrame(rows)
    return Numbers(Table(table, columns), _claims(table, quantile))


def _claims(table: pd.DataFrame, quantile: float) -> Claims:
    deviations = (table["mean_square"] - table["law"]) / table["std_error"]
    worst = int(np.argmax(np.abs(deviations)))
    ratio, error = (table[name][worst] / table["law"][worst] for name in ("mean_square", "std_error"))
    claim = Claims("walks", source="derived here")
    claim.equal(
        "spread",
        "The mean square distance after $n$ steps is $n$: the ratio at the worst $n$.",
        ratio,
        1,
        within=quantile * error,
        because="the quantile of the largest deviation",
        std_error=error,
        rejects=("walkers that never turn", ratio * table["steps"][worst]),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the points with error bars and the line."""
    figure, axes = plt.subplots(figsize=SIZE)
    axes.errorbar(table["steps"], table["mean_square"], yerr=2 * table["std_error"], fmt="o", color=COLOUR)
    axes.plot(table["steps"], table["law"], color=ink(), linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="steps $n$", ylabel="mean square distance")
    return figure
