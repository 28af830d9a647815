"""Searches beyond A = uI without noise: over all heads for d = 1, and over A = uI with noisy labels."""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize

from chapters.risk_and_parameters.isotropic_heads import DIMENSION, best_heads, exact_risk, log_risk
from lib.attention import Attention
from lib.icl import LinearRegression, PairAverage, ScoreTable

# Radial nodes of the average over queries and tasks for d = 1, and standard deviations of the random starts.
RADII, SPREAD = 48, (0.5, 0.5, 0.5, 2.0)
# Length at which the searches with noisy labels are compared with the limit.
NOISY_LENGTH = 10**6


class LineSearch(NamedTuple):
    """The end of one search over all heads for d = 1, and 2R·L of the best A = uI and of the best linear head."""

    length: int
    scaled_risk: float
    label_weight: float
    block: float
    linear: float


class NoisyBest(NamedTuple):
    """The excess risk of the best head A = uI, times 2L, at one variance of the label noise."""

    noise: float
    excess: float


def solve_line_searches(lengths: Iterable[int], starts: int, *, key: PRNGKeyArray) -> list[LineSearch]:
    """Search all heads for d = 1 from `starts` random heads at each length; return the ends."""
    task, average = LinearRegression(np.eye(1)), PairAverage.line(RADII)

    @jax.jit
    def log_risk_of_head(point, scores):
        def of_point(point):
            head = line_head(point)
            return jnp.log(task.infinite_risk(head) + task.risk_gap(head, scores, average))

        return jax.value_and_grad(of_point)(point)

    start_points = np.asarray(jr.normal(key, (starts, 4))) * np.asarray(SPREAD)
    lengths, ends = sorted(lengths), []
    for length, scores in zip(lengths, ScoreTable.at_each(np.log(lengths)), strict=True):
        linear = 2 * length * float(task.linear_attention_risk(length))
        block = min(head.ratio for head in best_heads(1, length)) * linear

        def objective(point, scores=scores):
            value, slope = log_risk_of_head(point, scores)
            return float(value), np.asarray(slope)

        for start in start_points:
            end = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6})
            a, c = np.abs(end.x[:2])
            ends.append(LineSearch(length, 2 * length * float(np.exp(end.fun)), float(c / (a + c)), block, linear))
    return ends


def solve_best_noisy_heads(noises: Iterable[float]) -> list[NoisyBest]:
    """Minimise the excess risk of A = uI over (u, b) for each variance of the label noise."""
    best = []
    for noise in sorted(noises):
        objective = log_risk(exact_risk(DIMENSION, NOISY_LENGTH, noise))
        start = np.log([1.0, DIMENSION**0.5])
        end = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-7})
        best.append(NoisyBest(noise, 2 * NOISY_LENGTH * float(np.exp(end.fun))))
    return best


def line_head(point: Float[Array, "4"]) -> Attention:
    """Return any head for d = 1, from the weights (a, c, v, b) of covariate and label in scores and in values."""
    a, c, v, b = point
    return Attention(jnp.zeros((2, 2)).at[0, 0].set(a).at[1, 0].set(c), jnp.stack([v, b])[None])
