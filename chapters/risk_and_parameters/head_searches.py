"""Heads beyond A = uI: all heads on the line, found by search, and the best head where labels are noisy."""

from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.optimize import minimize

from chapters.risk_and_parameters.isotropic_heads import DIMENSION, best_heads
from lib.icl import Blocks, LinearRegression, block_risk, line_average, line_head, radial_average, score_table

# Nodes of an average over queries and tasks on the line; and how widely searches start.
RADII, SPREAD = 48, (0.5, 0.5, 0.5, 2.0)
# Length at which noisy labels are compared with their law.
NOISY_LENGTH = 10**6


class Found(NamedTuple):
    """Where one search over all heads on the line ended; and the best A = uI and the best linear head there."""

    length: int
    scaled_risk: float
    sees_labels: float
    block: float
    linear: float


class Noisy(NamedTuple):
    """The best block head's excess risk, times 2L, at one variance of the labels' noise."""

    noise: float
    excess: float


def search_line(lengths: Iterable[int], starts: int, *, key: PRNGKeyArray) -> list[Found]:
    """The end of a search from each of `starts` random heads, at each length."""
    task, average = LinearRegression(np.eye(1)), line_average(RADII)

    @jax.jit
    def log_risk(point, scores):
        def of(point):
            head = line_head(point)
            return jnp.log(task.infinite_risk(head) + task.risk_gap(head, scores, average))

        return jax.value_and_grad(of)(point)

    begins = np.asarray(jr.normal(key, (starts, 4))) * np.asarray(SPREAD)
    found = []
    for length in sorted(lengths):
        scores, linear = score_table(float(np.log(length))), 2 * length * float(task.linear_attention_risk(length))
        block = min(head.ratio for head in best_heads(1, length)) * linear

        def objective(point, scores=scores):
            value, slope = log_risk(point, scores)
            return float(value), np.asarray(slope)

        for begin in begins:
            end = minimize(objective, begin, jac=True, method="BFGS", options={"gtol": 1e-6})
            a, c = np.abs(end.x[:2])
            found.append(Found(length, 2 * length * float(np.exp(end.fun)), float(c / (a + c)), block, linear))
    return found


def search_noisy(noises: Iterable[float]) -> list[Noisy]:
    """The least excess risk of A = uI over (u, b), for each variance of the noise."""
    scores, queries = score_table(float(np.log(NOISY_LENGTH))), radial_average(DIMENSION)

    @jax.jit
    def log_excess(point, noise):
        def of(point):
            task = LinearRegression(jnp.eye(DIMENSION), noise_std=jnp.sqrt(noise))
            tilt, gain = jnp.exp(point)
            risk = block_risk(task, Blocks(tilt * jnp.eye(DIMENSION), gain), scores, queries)
            return jnp.log(2 * risk - noise)

        return jax.value_and_grad(of)(point)

    found = []
    for noise in sorted(noises):

        def objective(point, noise=noise):
            value, slope = log_excess(point, noise)
            return float(value), np.asarray(slope)

        begin = np.log([DIMENSION**-0.5, DIMENSION**0.5])
        end = minimize(objective, begin, jac=True, method="BFGS", options={"gtol": 1e-7})
        found.append(Noisy(noise, NOISY_LENGTH * float(np.exp(end.fun))))
    return found
