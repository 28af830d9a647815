"""The largest eigenvalue of the covariance of the tokens of random tasks."""

from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.icl_infinite.block_flows import toeplitz


@dataclass(frozen=True)
class Tasks:
    """‖w‖² of random tasks, and the largest eigenvalue of the covariance of their tokens, for one Σ."""

    squares: Float[np.ndarray, " n"]
    scales: Float[np.ndarray, " n"]

    @property
    def ratio(self) -> float:
        """Return the largest `‖Γ_w‖ / (1 + ‖w‖²)`."""
        return float(np.max(self.scales / (1 + self.squares)))


def simulate_token_scales(d: int, draws: int, *, key: PRNGKeyArray) -> dict[str, Tasks]:
    """Return the scales of the same normal w, and of one w along the first axis, for ‖Σ‖ = 1 and for a larger Σ."""
    large = toeplitz(d)
    eigenvalues, axes = np.linalg.eigh(large)
    tasks = np.concatenate([np.asarray(jr.normal(key, (draws, d))), np.sqrt(d) * axes[:, -1:].T])
    return {"‖Σ‖ = 1": _tasks(large / eigenvalues[-1], tasks), "‖Σ‖ > 1": _tasks(large, tasks)}


def _tasks(cov: Float[np.ndarray, "d d"], tasks: Float[np.ndarray, "n d"]) -> Tasks:
    """Return the scales of `tasks`: `Γ_w = M Σ Mᵀ`, with the identity over w in M, because `z = (x, ⟨w, x⟩) = M x`."""
    maps = np.concatenate([np.tile(np.eye(len(cov)), (len(tasks), 1, 1)), tasks[:, None]], axis=1)
    return Tasks(np.sum(tasks**2, axis=1), np.linalg.eigvalsh(maps @ cov @ np.swapaxes(maps, 1, 2))[:, -1])
