r"""The scale of the tokens of a task, for covariates of norm one and larger.

Each point is a random task: the largest eigenvalue of the covariance $\Gamma_w$ of its tokens against $\|w\|^2$, for
the Toeplitz matrix divided by its norm (dots) and for the Toeplitz matrix itself (crosses). Line: $1+\|w\|^2$, the
scale $\sigma_w^2$ that serves every task when $\|\Sigma\|\le1$.

Alt: Points rise with the squared size of the task vector. The dots stay below a straight line, one of them on it; many
of the crosses lie above.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float, PRNGKeyArray
from matplotlib.figure import Figure

from chapters.icl_infinite.block_flows import toeplitz
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink

# Eigenvalues of a 6×6 matrix of size 10.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Tasks:
    """Random tasks of one Σ: ‖w‖², and the largest eigenvalue of the covariance of the tokens."""

    squares: Float[np.ndarray, " n"]
    scales: Float[np.ndarray, " n"]

    @property
    def ratio(self) -> float:
        """The largest `‖Γ_w‖ / (1 + ‖w‖²)`."""
        return float(np.max(self.scales / (1 + self.squares)))


def simulate(d: int, draws: int, *, key: PRNGKeyArray) -> dict[str, Tasks]:
    """The same normal w, and one along the first axis of Σ, for a Σ of norm one and for a larger one."""
    large = toeplitz(d)
    eigenvalues, axes = np.linalg.eigh(large)
    tasks = np.concatenate([np.asarray(jr.normal(key, (draws, d))), np.sqrt(d) * axes[:, -1:].T])
    return {"‖Σ‖ = 1": _tasks(large / eigenvalues[-1], tasks), "‖Σ‖ > 1": _tasks(large, tasks)}


def _tasks(cov: Float[np.ndarray, "d d"], tasks: Float[np.ndarray, "n d"]) -> Tasks:
    """`z = (x, ⟨w, x⟩)` is linear in x: `Γ_w = M Σ Mᵀ`, with the identity over w in M."""
    maps = np.concatenate([np.tile(np.eye(len(cov)), (len(tasks), 1, 1)), tasks[:, None]], axis=1)
    return Tasks(np.sum(tasks**2, axis=1), np.linalg.eigvalsh(maps @ cov @ np.swapaxes(maps, 1, 2))[:, -1])


def numbers(tasks: Mapping[str, Tasks]) -> Numbers:
    """Scale by task; none above the line where Σ has norm one."""
    frames = [
        pd.DataFrame({"covariance": name, "task": these.squares, "scale": these.scales})
        for name, these in tasks.items()
    ]
    columns = {
        "covariance": Column("Σ, by its norm", "name"),
        "task": Column("‖w‖² of the task"),
        "scale": Column("The largest eigenvalue of the covariance of its tokens"),
    }
    return Numbers(Table(pd.concat(frames, ignore_index=True), columns), (_scale_claim(*tasks.values()),))


def _scale_claim(one: Tasks, larger: Tasks) -> Claim:
    """‖Γ_w‖ against 1 + ‖w‖²: equal for a task along the first axis of a Σ of norm one."""
    return Claim(
        id="icl-infinite-task-scale",
        statement=(
            f"Where ‖Σ‖ ≤ 1 the tokens of task w are sub-Gaussian with σ_w² = 1 + ‖w‖²: the largest ratio to it of an "
            f"eigenvalue of Γ_w, over {len(one.squares)} tasks."
        ),
        source="[BB26, Lemma E.1]",
        box="bb26-lemma-e-1",
        measured=one.ratio,
        expected=1.0,
        tolerance=ROUNDING,
        relation="≤",
        alternative=Alternative("the same σ_w² where ‖Σ‖ > 1", larger.ratio),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Points by covariance, and the line."""
    figure, axes = plt.subplots(figsize=(6.5, 4.4))
    squares = np.array([0.0, table["task"].max()])
    axes.plot(squares, 1 + squares, color=ink(), linewidth=1.5)
    axes.annotate(r"$1+\|w\|^2$", (squares[1], 1 + squares[1]), xytext=(6, 0), textcoords="offset points", va="center")
    for (name, mine), marker, colour in zip(table.groupby("covariance", sort=False), ".x", ("C0", "C1"), strict=True):
        label = str(name).replace("‖Σ‖", r"$\|\Sigma\|$")
        axes.plot(mine["task"], mine["scale"], marker, color=colour, markersize=6, linestyle="none", label=label)
    axes.set(xlabel=r"$\|w\|^2$", ylabel=r"largest eigenvalue of $\Gamma_w$", xlim=(0, None), ylim=(0, None))
    axes.legend(loc="upper left")
    headline(figure, r"Where $\|\Sigma\|\leq 1$ a task's scale is at most $1+\|w\|^2$")
    return figure
