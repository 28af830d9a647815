"""One head for all tasks and one head for each task: exact errors at a finite prompt length, and simulated ones.

D covariates are shared by I tasks of dimension δ = D/I, without label noise and with prior variance 1. One head for all
tasks has the total error of one regression in dimension D; one head for each task has that of I regressions in
dimension δ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize_scalar

from chapters.worth_of_heads.disjoint_tasks import allocated_heads, linear_heads
from lib.finite_prompt import score_statistics
from lib.icl import best_in_the_valley
from lib.statistics import standard_error

# Nodes in the length of the query, and standard deviations of it that they cover on both sides.
RADII, REACH = 48, 10.0
# Nodes of less weight, relative to the largest, do not change any digit.
LEAST_LOG_WEIGHT = -50.0
# Simulated prompts in memory at once.
BATCH = 250


@dataclass(frozen=True)
class Head:
    """The best head `A = ωI` with value μ on one regression, and its mean square error."""

    key: float
    value: float
    error: float


@dataclass(frozen=True)
class Separations:
    """Errors of one shared head and of one head for each task, by number of tasks, and in the limit of long prompts.

    Attributes:
      tasks: numbers of tasks I.
      shared: exact error of one head for all tasks.
      allocated: exact error of one head for each task.
      long_shared: limit of L times the error of one head for all tasks.
      long_allocated: limit of L times the error of one head for each task.
      least_cost: lower bound of the error of one head for each task over the least one of as many heads, long prompts.
      largest_cost: upper bound of the same ratio.
    """

    tasks: Float[np.ndarray, " tasks"]
    shared: float
    allocated: Float[np.ndarray, " tasks"]
    long_shared: float
    long_allocated: Float[np.ndarray, " tasks"]
    least_cost: Float[np.ndarray, " tasks"]
    largest_cost: Float[np.ndarray, " tasks"]


@dataclass(frozen=True)
class Simulated:
    """Square errors, summed over tasks, on the same simulated prompts: one shared head, and one head for each task."""

    shared: Float[np.ndarray, " prompts"]
    allocated: Float[np.ndarray, "prompts tasks"]

    def ratios(self) -> tuple[Float[np.ndarray, " tasks"], Float[np.ndarray, " tasks"]]:
        """Return the ratio of the mean errors by number of tasks, and its standard error (by linearisation)."""
        ratios = self.shared.mean() / self.allocated.mean(axis=0)
        differences = (self.shared[:, None] - ratios * self.allocated) / self.allocated.mean(axis=0)
        return ratios, np.asarray(standard_error(differences))


def head_error(dimension: int, key: float, length: int) -> tuple[float, float]:
    """Return the best value of a head with this key in one regression, and its exact mean square error.

    `E r²P` and `E [Q + (d - 1) P]` are integrals over the length r of the query, with P and Q at the tilt ω r.
    """
    nodes, width = np.polynomial.legendre.leggauss(RADII)
    low, high = max(0.0, dimension**0.5 - REACH), dimension**0.5 + REACH
    radius = low + (high - low) * (nodes + 1) / 2
    log_weight = np.log(width) + (dimension - 1) * np.log(radius) - radius**2 / 2
    log_weight -= log_weight.max()
    seen = log_weight > LEAST_LOG_WEIGHT
    radius, weight = radius[seen], np.exp(log_weight[seen])
    weight /= weight.sum()
    statistics = score_statistics((key * radius) ** 2, math.log(length))
    participation, score_error = np.asarray(statistics.participation), np.asarray(statistics.score_error)
    shrinkage = float(radius**2 * participation @ weight)
    noise = float((score_error + (dimension - 1) * participation) @ weight) / key**2
    curvature = dimension - 2 * shrinkage + noise
    gain = (dimension - shrinkage) / curvature
    return gain / key, dimension - (dimension - shrinkage) * gain


def best_head(dimension: int, length: int) -> Head:
    """Return the head of least exact error in one regression."""
    scale = math.log(dimension**-0.5)
    search = minimize_scalar(
        lambda log_key: head_error(dimension, math.exp(log_key), length)[1],
        bounds=(scale - 1.5, scale + 0.7),
        method="bounded",
        options={"xatol": 1e-5},
    )
    key = math.exp(search.x)
    value, error = head_error(dimension, key, length)
    return Head(key, value, error)


def solve_heads(covariates: int, counts: Sequence[int], length: int) -> tuple[Head, list[Head]]:
    """Return the best head for all tasks, and the best head of a task at each number of tasks."""
    return best_head(covariates, length), [best_head(covariates // tasks, length) for tasks in counts]


def solve_separations(covariates: int, counts: Sequence[int], heads: tuple[Head, list[Head]]) -> Separations:
    """Return the errors of these best heads by number of tasks, with their limits, and the costs of long prompts.

    The best I heads reach the error of I - 1 linear heads, and do not beat I linear heads.
    """
    shared, single = heads
    allocated = np.array([allocated_heads(tasks, covariates // tasks) for tasks in counts])
    return Separations(
        np.array(counts, float),
        shared.error,
        np.array([tasks * head.error for tasks, head in zip(counts, single, strict=True)]),
        best_in_the_valley(covariates).limit,
        allocated,
        allocated / [linear_heads(covariates, tasks - 1) for tasks in counts],
        allocated / [linear_heads(covariates, tasks) for tasks in counts],
    )


@partial(jax.jit, static_argnums=(0, 1, 2))
def _squares(
    covariates: int,
    length: int,
    arrangements: tuple[tuple[int, bool], ...],
    heads: tuple[Float[Array, " c"], Float[Array, " c"]],
    key: PRNGKeyArray,
) -> Float[Array, "batch c"]:
    """Return the square errors, summed over tasks, of each arrangement on the same prompts.

    An arrangement is a number of tasks, and whether one head with one score for all covariates is shared by all tasks;
    `heads` are the keys and values.
    """
    draws = jr.normal(key, (length + 2, covariates, BATCH))
    tokens, query, weights = draws[:length], draws[length], draws[length + 1]
    products = tokens * query, tokens * weights
    targets = query * weights
    columns = []
    for column, (tasks, shared) in enumerate(arrangements):
        width = covariates // tasks
        scores, labels = (each.reshape(length, tasks, width, BATCH).sum(axis=2) for each in products)
        if shared:
            scores = scores.sum(axis=1, keepdims=True)
        attention = jax.nn.softmax(heads[0][column] * scores, axis=0)
        outputs = heads[1][column] * jnp.sum(attention * labels, axis=0)
        columns.append(jnp.sum((outputs - targets.reshape(tasks, width, BATCH).sum(axis=1)) ** 2, axis=0))
    return jnp.stack(columns, axis=1)


def simulate_separations(
    covariates: int,
    counts: Sequence[int],
    length: int,
    heads: tuple[Head, list[Head]],
    prompts: int,
    *,
    key: PRNGKeyArray,
) -> Simulated:
    """Return the errors of a shared head and of one head for each task on simulated prompts.

    Args:
      covariates: their number D.
      counts: numbers of tasks I; the shared head works on the largest number.
      length: tokens L of a prompt.
      heads: the shared head, and the head of a task at each number of tasks.
      prompts: number of simulated prompts.
      key: random key.
    """
    arrangements = ((max(counts), True), *((tasks, False) for tasks in counts))
    used = [heads[0], *heads[1]]
    parameters = jnp.array([head.key for head in used]), jnp.array([head.value for head in used])
    batches = jr.split(key, -(-prompts // BATCH))
    squares = [np.asarray(_squares(covariates, length, arrangements, parameters, batch)) for batch in batches]
    squares = np.concatenate(squares)[:prompts]
    return Simulated(squares[:, 0], squares[:, 1:])
