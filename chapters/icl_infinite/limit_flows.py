"""Flows of tasks with three covariances, from random balanced starts to the limit."""

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.icl_infinite.block_flows import (
    Flow,
    published_bounds,
    recording_times,
    solve_flows,
    toeplitz,
)
from lib.icl import Blocks, LinearRegression


def make_tasks(d: int, condition: float, *, key: PRNGKeyArray) -> dict[str, LinearRegression]:
    """Return tasks with an isotropic, a mildly correlated and an ill-conditioned covariance."""
    axes = np.linalg.qr(np.asarray(jr.normal(key, (d, d)))).Q
    ill = axes * np.geomspace(1.0, 1 / condition, d) @ axes.T
    named = {"identity": np.eye(d), "Toeplitz": toeplitz(d), f"condition number {condition:g}": (ill + ill.T) / 2}
    return {name: LinearRegression(cov) for name, cov in named.items()}


def solve_to_the_limit(tasks: dict[str, LinearRegression], points: int, *, key: PRNGKeyArray) -> dict[str, Flow]:
    """Return the flow of each task from a random balanced start, at half the smaller published bound on α."""
    starts = [
        Blocks.balanced(jr.normal(jr.fold_in(key, i), task.cov.shape), min(published_bounds(task.cov)) / 2)
        for i, task in enumerate(tasks.values())
    ]
    flows = solve_flows([*tasks.values()], starts, [recording_times(task, points) for task in tasks.values()])
    return dict(zip(tasks, flows, strict=True))
