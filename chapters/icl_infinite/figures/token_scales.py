r"""For covariates with $\|\Sigma\|\le1$ the squared scale of the tokens of a task $w$ is at most $1+\|w\|^2$.

Each point is a random task: the largest eigenvalue of the covariance $\Gamma_w$ of its tokens as a function of
$\|w\|^2$, for the Toeplitz matrix $2^{-|i-j|}$ divided by its norm (dots) and for this matrix itself (crosses). The
line is $1+\|w\|^2$, the squared scale $\sigma_w^2$ of the lemma, valid for every task if $\|\Sigma\|\le1$.

Alt: Points rise with the squared size of the task vector. The dots stay below a straight line, one of them on it; many
of the crosses are above.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_infinite.token_covariances import Tasks
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# Bound on the rounding of the eigenvalues of a 6×6 matrix of size 10.
ROUNDING = 1e-12


def numbers(tasks: Mapping[str, Tasks]) -> Numbers:
    """Return the scales by task, and the claim that none is above the line for ‖Σ‖ = 1."""
    groups = [{"covariance": name, "task": sample.squares, "scale": sample.scales} for name, sample in tasks.items()]
    columns = {
        "covariance": Column("$Σ$, by its norm", "name"),
        "task": Column("$‖w‖²$ of the task"),
        "scale": Column("Largest eigenvalue of the covariance of the tokens of this task"),
    }
    one, larger = tasks.values()
    claim = Claims("icl-infinite", source="[BB26, Lemma E.1]", box="bb26-lemma-e-1")
    claim.at_most(
        "task-scale",
        "If $‖Σ‖ ≤ 1$ the tokens of task $w$ are sub-Gaussian with $σ_w² = 1 + ‖w‖²$ (measured: the largest ratio of "
        f"an eigenvalue of $Γ_w$ to $σ_w²$, over {len(one.squares)} tasks).",
        one.ratio,
        1,
        within=ROUNDING,
        because="bound on the rounding of the eigenvalues of a small matrix",
        rejects=("the same $σ_w²$ is valid for $‖Σ‖ > 1$", larger.ratio),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the points of both covariances, and the line with the region that the lemma allows."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.4))
    squares, top = np.array([0.0, 1.04 * table["task"].max()]), 1.04 * table["scale"].max()
    axes.fill_between(squares, 1 + squares, color="C0", alpha=0.1, linewidth=0)
    axes.plot(squares, 1 + squares, color=ink(), linewidth=1.8)
    label(axes, squares[1], 1 + squares[1], "bound of\nthe lemma,\n" + r"$1+\|w\|^2$", ink())
    names = {"‖Σ‖ = 1": r"$\|\Sigma\|\leq1$:" + "\nall below\nthe line", "‖Σ‖ > 1": r"$\|\Sigma\|>1$: many above"}
    places = {"‖Σ‖ = 1": (1.02, 0.1, "bottom"), "‖Σ‖ > 1": (0.03, 0.93, "top")}
    for (name, rows), marker, colour in zip(table.groupby("covariance", sort=False), "ox", ("C0", "C1"), strict=True):
        axes.plot(rows["task"], rows["scale"], marker, color=colour, markersize=4, linestyle="none", alpha=0.8)
        x, y, side = places[str(name)]
        axes.text(x, y, names[str(name)], color=colour, va=side, fontsize=12, transform=axes.transAxes)
    axes.set(xlim=squares, ylim=(0, top), xlabel=r"squared size of the task, $\|w\|^2$")
    axes.set_ylabel("squared scale of the tokens:\n" + r"largest eigenvalue of $\Gamma_w$")
    return figure
