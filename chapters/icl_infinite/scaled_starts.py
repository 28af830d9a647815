"""Random starts of every scale α, inside and outside the two intervals that ensure a good one, and their flows."""

from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.icl_infinite.block_flows import Flow, bounds, clock, follow, toeplitz
from lib.icl import LinearRegression, balanced_start

# Divides a Σ of norm 2.6, or in higher dimension up to 3, and makes it small.
SHRINKING = 16.0


@dataclass(frozen=True)
class ScaledStart:
    """One random start of scale α and the flow from it, beside the two bounds on α."""

    covariance: str
    alpha: float
    paper: float
    earlier: float
    flow: Flow


def narrow_and_wide(d: int) -> dict[str, LinearRegression]:
    """One covariance at two scales, on either side of ‖Σ‖ = 1, where the two conditions on α change order."""
    return {"‖Σ‖ > 1": LinearRegression(toeplitz(d)), "‖Σ‖ < 1": LinearRegression(toeplitz(d) / SHRINKING)}


def runs_from_every_scale(
    tasks: dict[str, LinearRegression], scales: int, starts: int, points: int, *, key: PRNGKeyArray
) -> list[ScaledStart]:
    """Runs from random Θ, at scales inside, at and outside the two intervals."""
    rows, runs = [], []
    for name, task in tasks.items():
        paper, earlier = bounds(task.cov)
        for alpha in sorted({*(earlier * np.geomspace(1 / 30, 30, scales)), paper, earlier}):
            for i in range(starts):
                rows.append((name, alpha, paper, earlier))
                runs.append((task, balanced_start(jr.normal(jr.fold_in(key, i), task.cov.shape), alpha)))
    flows = follow([task for task, _ in runs], [start for _, start in runs], [clock(task, points) for task, _ in runs])
    return [ScaledStart(*row, flow) for row, flow in zip(rows, flows, strict=True)]
