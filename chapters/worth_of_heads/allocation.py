"""How heads allocate tasks in training: the gradient flow of the error of long prompts, and stochastic descent.

The protocol is that of the simulation code of [Ch24] at a smaller size: H = I heads with full matrices K, Q, V and O,
scores divided by the root of the number of rows, fresh prompts at every step, the mean square error over tasks, and the
diagonal start that the code provides, in which head h has twice the value of the other heads for task h.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.worth_of_heads.disjoint_tasks import several_tasks_law
from chapters.worth_of_heads.separation import best_head
from lib.flow import follow_flow
from lib.statistics import standard_error

TASKS, DIMENSION, LENGTH = 3, 2, 100
ROWS = TASKS * DIMENSION + TASKS
STEP_SIZE, BATCH = 0.25, 128
# Diagonal entries of all four matrices at the start; those of the own task in V and O are twice as large.
START = 0.1
# Relative difference between the entries of V and O at the start of the second flow.
IMBALANCE = 0.01
# Windows in which the losses of steps are averaged, and steps around each time that are averaged to find a time.
WINDOWS, SMOOTHING = 100, 40
# The part of the training, at its end, whose loss is reported, and steps by which it is below one head per task.
LAST, LATE = 0.1, 2500


class Factors(NamedTuple):
    """Diagonal entries of the matrices, shape (H, I), for covariates of each task (k, q) and for labels (v, o)."""

    k: Float[Array, "heads tasks"]
    q: Float[Array, "heads tasks"]
    v: Float[Array, "heads tasks"]
    o: Float[Array, "heads tasks"]


class Matrices(NamedTuple):
    """The trained matrices of all heads."""

    k: Float[Array, "heads rows rows"]
    q: Float[Array, "heads rows rows"]
    v: Float[Array, "heads rows rows"]
    o: Float[Array, "heads tasks rows"]


@dataclass(frozen=True)
class Flow:
    """Mean square error per task along the gradient flow, and its speed at the start (negative)."""

    times: Float[np.ndarray, " times"]
    error: Float[np.ndarray, " times"]
    initial_speed: float


@dataclass(frozen=True)
class Training:
    """Losses of the steps of stochastic descent; a step lasts `STEP_SIZE`."""

    losses: Float[np.ndarray, " steps"]

    def windows(self) -> Float[np.ndarray, "windows steps"]:
        """Return the losses in `WINDOWS` windows of equal size."""
        return self.losses[: self.losses.size // WINDOWS * WINDOWS].reshape(WINDOWS, -1)

    def window_times(self) -> Float[np.ndarray, " windows"]:
        """Return the time in the middle of each window."""
        size = self.losses.size // WINDOWS
        return STEP_SIZE * size * (np.arange(WINDOWS) + 0.5)

    def time_below(self, level: float) -> float:
        """Return the first time when the loss, averaged over `SMOOTHING` steps, is below `level`; NaN if never."""
        smooth = np.convolve(self.losses, np.ones(SMOOTHING) / SMOOTHING, "valid")
        below = np.flatnonzero(smooth < level)
        return STEP_SIZE * (below[0] + SMOOTHING / 2) if below.size else float("nan")

    def last(self) -> tuple[float, float]:
        """Return the mean loss at the end of the training, and its standard error."""
        losses = self.losses[-int(LAST * self.losses.size) :]
        return float(losses.mean()), float(standard_error(losses))


def long_prompt_error(
    dimension: int, omega: Float[Array, "heads tasks"], mu: Float[Array, "heads tasks"], length: float
) -> Float[Array, ""]:
    """Return the total mean square error of heads `Σ_j ω_hj P_j` with values μ_hi, up to order 1/L.

    `several_tasks_law` and the bias at finite L: a head's mean response is `μω(1 - P)`, where P is about
    `e^{Σ_j ω_hj² r_j²}/L` at lengths r_j of the parts of the query.
    """
    tasks = omega.shape[1]
    infinite, coefficient = several_tasks_law((dimension,) * tasks, omega, mu)
    left = 1 - 2 * omega**2
    growth = jnp.prod(left ** (-dimension / 2), axis=1, keepdims=True)
    missing = 1 - jnp.sum(mu * omega, axis=0)
    bias = 2 * dimension * jnp.sum(missing * jnp.sum(mu * omega * growth / left, axis=0))
    return 2 * infinite + (2 * coefficient + bias) / length


def _error_per_task(factors: Factors) -> Float[Array, ""]:
    """Return the error per task of heads with these diagonal entries."""
    omega = factors.k * factors.q / ROWS**0.5
    return long_prompt_error(DIMENSION, omega, factors.v * factors.o, LENGTH) / TASKS


def _start(imbalance: float) -> Factors:
    values = START * (np.ones((TASKS, TASKS)) + np.eye(TASKS))
    keys = START * np.ones((TASKS, TASKS))
    return Factors(keys, keys, values * (1 + imbalance), values * (1 - imbalance))


def solve_flows(steps: int) -> tuple[Flow, Flow]:
    """Return the gradient flow from the start with V = Oᵀ, and from one where their entries differ by `IMBALANCE`.

    A diagonal entry of K or Q for a task stands for δ entries of the matrix, so that the flow of the matrices is that
    of √δ times the entry.
    """
    scales = np.array([DIMENSION, DIMENSION, 1.0, 1.0])[:, None, None] ** 0.5
    times = np.linspace(0, steps * STEP_SIZE, 4 * WINDOWS + 1)

    @jax.jit
    @jax.value_and_grad
    def error_and_slope(scaled):
        return _error_per_task(Factors(*scaled.reshape(4, TASKS, TASKS) / scales))

    def flow(imbalance: float) -> Flow:
        start = (np.stack(_start(imbalance)) * scales).ravel()
        _, errors = follow_flow(error_and_slope, start, times, rtol=1e-8, atol=1e-10)
        return Flow(times, errors, -float(np.sum(np.square(error_and_slope(start)[1]))))

    return flow(0.0), flow(IMBALANCE)


def solve_one_head_per_task() -> float:
    """Return the exact least error of one head for each task, per task."""
    return best_head(DIMENSION, LENGTH).error


def matrices_at_start() -> Matrices:
    """Return the diagonal matrices of the start, in single precision."""
    start = _start(0.0)
    keys = START * jnp.tile(jnp.eye(ROWS), (TASKS, 1, 1))
    covariates = jnp.zeros((TASKS, TASKS * DIMENSION))
    values = jax.vmap(jnp.diag)(jnp.concatenate([covariates, start.v], axis=1))
    outputs = values[:, TASKS * DIMENSION :, :]
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), Matrices(keys, keys, values, outputs))


def batch_loss(matrices: Matrices, normals: Float[Array, "rows batch"]) -> Float[Array, ""]:
    """Return the mean square error over prompts and tasks; `normals` are tokens, queries and task vectors.

    The prompts are the last axis, which is faster on a CPU than small matrix products for each prompt.
    """
    covariates = TASKS * DIMENSION
    tokens = normals[: LENGTH * covariates].reshape(LENGTH, covariates, -1)
    query, weights = normals[LENGTH * covariates :].reshape(2, covariates, -1)
    labels = (tokens * weights).reshape(LENGTH, TASKS, DIMENSION, -1).sum(axis=2)
    targets = (query * weights).reshape(TASKS, DIMENSION, -1).sum(axis=1)
    rows = jnp.concatenate([tokens, labels], axis=1)
    bilinear = jnp.einsum("hrc,hrd->hcd", matrices.k, matrices.q[:, :, :covariates]) / ROWS**0.5
    tilts = jnp.einsum("hcd,db->hcb", bilinear, query)
    attention = jax.nn.softmax(jnp.sum(rows * tilts[:, None], axis=2), axis=1)
    means = jnp.sum(attention[:, :, None] * rows, axis=1)
    outputs = jnp.einsum("hir,hrc,hcb->ib", matrices.o, matrices.v, means)
    return jnp.mean((outputs - targets) ** 2)


@partial(jax.jit, static_argnums=0)
def _descend(steps: int, key: PRNGKeyArray) -> Float[Array, " steps"]:
    rows = (LENGTH + 2) * TASKS * DIMENSION

    def step(matrices, key):
        normals = jr.normal(key, (rows, BATCH), dtype=jnp.float32)
        loss, slope = jax.value_and_grad(batch_loss)(matrices, normals)
        return jax.tree.map(lambda leaf, change: leaf - STEP_SIZE * change, matrices, slope), loss

    return jax.lax.scan(step, matrices_at_start(), jr.split(key, steps))[1]


def train_heads(steps: int, *, key: PRNGKeyArray) -> Training:
    """Return the losses of stochastic gradient descent on fresh prompts, from the diagonal start."""
    return Training(np.asarray(_descend(steps, key), float))
