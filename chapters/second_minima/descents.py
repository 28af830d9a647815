"""Descents from the random starts of the published model, as long as its training, with exact mean squares."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from chapters.published_experiment.head_points import points_of
from chapters.published_experiment.protocol import (
    LAWS,
    PUBLISHED_STEP_SIZE,
    PUBLISHED_STEPS,
    WIDTH,
    SeparateWeights,
    published_head,
    published_task,
)
from chapters.published_experiment.runs import ROWS, Plan, Schedule, histories
from chapters.second_minima.landscape import few_nodes, linear_square, softmax_square, task_of
from chapters.second_minima.parameters import SECOND_LENGTH
from lib.attention import Attention
from lib.flow import sgd
from lib.icl import LinearRegression, PairAverage

STEP_SIZE, BATCH = 0.05, 64
# As long as the published training.
STEPS = round(PUBLISHED_STEPS * PUBLISHED_STEP_SIZE / STEP_SIZE)


@dataclass(frozen=True)
class Paths:
    """Times, exact mean squares and heads (points of the landscape) along descents from random starts."""

    times: Float[np.ndarray, "starts rows"]
    risks: Float[np.ndarray, "starts rows"]
    points: Float[np.ndarray, "starts rows n"]


# Descents by (activation, law).
Descents = Mapping[tuple[str, str], Paths]


def train_linear(starts: int, *, key: PRNGKeyArray) -> Descents:
    """Train linear attention by exact gradient descent, from the same starts for both covariances."""
    return {("linear", law): _paths(*_train_linear(published_task(bug), starts, key)) for law, bug in LAWS.items()}


@partial(jax.jit, static_argnums=1)
def _train_linear(task: LinearRegression, starts: int, key: PRNGKeyArray):
    def risk(weights, key=None):
        return linear_square(task, published_head(weights))

    def run(key):
        start = SeparateWeights.draw(WIDTH, key=key, dtype=float)
        path = sgd(risk, start, optimiser=optax.sgd(STEP_SIZE), steps=STEPS, every=STEPS // ROWS, key=key)
        return path.times, jax.vmap(risk)(path.params), jax.vmap(published_head)(path.params)

    return jax.vmap(run)(jr.split(key, starts))


def train_softmax(starts: int, *, key: PRNGKeyArray) -> Descents:
    """Train softmax by stochastic descent, because exact descent is slow; return exact mean squares of its heads."""
    return {("softmax", law): _train_softmax(law, starts, key) for law in LAWS}


def _train_softmax(law: str, starts: int, key: PRNGKeyArray) -> Paths:
    plan = Plan(law, [SECOND_LENGTH], starts, Schedule(STEPS, STEP_SIZE, BATCH))
    trajectory = histories(plan, "softmax", SECOND_LENGTH, key=key)
    weights = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), trajectory.params)
    heads = jax.vmap(jax.vmap(published_head))(weights)
    return _paths(trajectory.times, _judge(task_of(law), heads, few_nodes()), heads)


@jax.jit
def _judge(task: LinearRegression, heads: Attention, average: PairAverage) -> Float[Array, "starts rows"]:
    """Return the exact mean square of each head, computed one after the other to save memory."""
    return jax.lax.map(partial(jax.lax.map, partial(softmax_square, task, average=average)), heads)


def _paths(steps: Int[Array, "starts rows"], risks: Float[Array, "starts rows"], heads: Attention) -> Paths:
    return Paths(np.asarray(steps) * STEP_SIZE, np.asarray(risks), points_of(heads))
