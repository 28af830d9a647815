"""Flows from starts of many scales α, inside and outside the intervals that ensure a good start.

Θ is random, or the first axis of Σ, along which a large start of given scale has the largest risk.
"""

from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.icl_infinite.block_flows import (
    Flow,
    published_bounds,
    recording_times,
    sharp_bound,
    solve_flows,
    toeplitz,
)
from chapters.icl_infinite.style import AXIS, RANDOM
from lib.icl import Blocks, LinearRegression

# Factor between the two covariances; the norm of the larger one is between 2.6 and 3.
COVARIANCE_RATIO = 16.0


@dataclass(frozen=True)
class ScaledStart:
    """One start of scale α with its flow and the bounds on α: [BB26], [ZFB24] and the sharp one."""

    covariance: str
    direction: str
    alpha: float
    paper: float
    earlier: float
    sharp: float
    flow: Flow


def large_and_small_covariance(d: int) -> dict[str, LinearRegression]:
    """Return one covariance at two scales, on both sides of ‖Σ‖ = 1, where the two conditions on α change order."""
    return {"‖Σ‖ > 1": LinearRegression(toeplitz(d)), "‖Σ‖ < 1": LinearRegression(toeplitz(d) / COVARIANCE_RATIO)}


def solve_from_every_scale(
    tasks: dict[str, LinearRegression], scales: int, starts: int, points: int, *, key: PRNGKeyArray
) -> list[ScaledStart]:
    """Return flows from random Θ at scales inside, at and outside the intervals, and from the first axis at the bounds.

    The first axis is tried only at the bounds, where it decides whether a bound is sharp.
    """
    rows, runs = [], []
    for name, task in tasks.items():
        limits = (*published_bounds(task.cov), sharp_bound(task.cov))
        random = [jr.normal(jr.fold_in(key, i), task.cov.shape) for i in range(starts)]
        axis = np.linalg.eigh(task.cov).eigenvectors[:, -1:]
        for alpha in sorted({*(limits[1] * np.geomspace(1 / 30, 30, scales)), *limits}):
            along = [(RANDOM, theta) for theta in random] + [(AXIS, axis)] * (alpha in limits)
            for direction, theta in along:
                rows.append((name, direction, alpha, *limits))
                runs.append((task, Blocks.balanced(theta, alpha)))
    times = [recording_times(task, points) for task, _ in runs]
    flows = solve_flows([task for task, _ in runs], [start for _, start in runs], times)
    return [ScaledStart(*row, flow) for row, flow in zip(rows, flows, strict=True)]
