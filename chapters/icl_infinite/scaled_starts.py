"""Starts of every scale α, inside and outside the intervals that ensure a good one, and their flows.

Θ is random, or the first axis of Σ: the direction in which a start of given scale is the worst, once it is large.
"""

from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.icl_infinite.block_flows import Flow, bounds, clock, follow, sharp_bound, toeplitz
from chapters.icl_infinite.style import AXIS, RANDOM
from lib.icl import LinearRegression, balanced_start

# Divides a Σ of norm 2.6, or in higher dimension up to 3, and makes it small.
SHRINKING = 16.0


@dataclass(frozen=True)
class ScaledStart:
    """One start of scale α and the flow from it, beside the bounds on α."""

    covariance: str
    direction: str
    alpha: float
    paper: float
    earlier: float
    sharp: float
    flow: Flow


def narrow_and_wide(d: int) -> dict[str, LinearRegression]:
    """One covariance at two scales, on either side of ‖Σ‖ = 1, where the two conditions on α change order."""
    return {"‖Σ‖ > 1": LinearRegression(toeplitz(d)), "‖Σ‖ < 1": LinearRegression(toeplitz(d) / SHRINKING)}


def runs_from_every_scale(
    tasks: dict[str, LinearRegression], scales: int, starts: int, points: int, *, key: PRNGKeyArray
) -> list[ScaledStart]:
    """Runs from random Θ, at scales inside, at and outside the intervals, and from the first axis at their ends."""
    rows, runs = [], []
    for name, task in tasks.items():
        limits = (*bounds(task.cov), sharp_bound(task.cov))
        random = [jr.normal(jr.fold_in(key, i), task.cov.shape) for i in range(starts)]
        axis = np.linalg.eigh(task.cov).eigenvectors[:, -1:]
        for alpha in sorted({*(limits[1] * np.geomspace(1 / 30, 30, scales)), *limits}):
            along = [(RANDOM, theta) for theta in random] + [(AXIS, axis)] * (alpha in limits)
            for direction, theta in along:
                rows.append((name, direction, alpha, *limits))
                runs.append((task, balanced_start(theta, alpha)))
    flows = follow([task for task, _ in runs], [start for _, start in runs], [clock(task, points) for task, _ in runs])
    return [ScaledStart(*row, flow) for row, flow in zip(rows, flows, strict=True)]
