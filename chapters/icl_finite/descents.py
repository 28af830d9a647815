"""Stochastic gradient descent on fresh prompts, beside gradient descent on the exact risk.

The exact descent moves two numbers, ‖A‖_F and b; the stochastic one moves all of A.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Float, PRNGKeyArray

from chapters.icl_finite.exact_flows import INFINITE, IsotropicProblem, stacked_tables
from lib.flow import sgd
from lib.icl import balanced_start, block_head, collapsed, plain, prompt_loss

# Largest and smallest batch: the noise of a step moves the mean over seeds as well, by order step/batch.
LARGEST_BATCH, SMALLEST_BATCH = 128, 8
LONGER = 1.2
SAMPLINGS = {"collapsed": collapsed, "plain": plain}


class Keys(NamedTuple):
    """For all prompts of the stochastic descents; and for the covariance and the starts of the random flows."""

    prompts: PRNGKeyArray
    starts: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, from `seed`."""
    return Keys(*jr.split(jr.key(seed)))


@dataclass(frozen=True)
class Plan:
    """How long descents are, how they are averaged, and what they may cost."""

    step: float
    steps: int
    every: int
    seeds: int
    tokens: int

    def batch(self, length: int) -> int:
        """Prompts a step and seed."""
        return int(np.clip(self.tokens // (length * self.seeds), SMALLEST_BATCH, LARGEST_BATCH))

    @property
    def gain_times(self) -> Float[np.ndarray, " rows"]:
        """Ends of the windows of steps."""
        return self.every * self.step * np.arange(1, self.steps // self.every + 1)

    @property
    def loss_times(self) -> Float[np.ndarray, " rows"]:
        """Their middles: a step's loss is that before the step."""
        return self.gain_times - self.step * (self.every + 1) / 2


@dataclass(frozen=True)
class ExactDescent:
    """Gradient descent on an exact risk: mean risk over each window of steps, and gain at its end.

    In the mean over prompts a stochastic step is a step of this, not of the flow: they differ by order `step`.
    """

    loss: Float[np.ndarray, " rows"]
    gain: Float[np.ndarray, " rows"]


def exact_descents(
    problem: IsotropicProblem, log_lengths: list[float], plan: Plan, steps: tuple[float, ...]
) -> list[list[ExactDescent]]:
    """For each step a list of descents, one a length; together, under one compilation."""

    def descent(step, scores):
        def move(params, _):
            risk, slope = jax.value_and_grad(problem.risk)(params, scores)
            params = jax.tree.map(lambda value, slope: value - step * slope, params, slope)
            return params, (risk, params.gain)

        return jax.lax.scan(move, problem.start, length=plan.steps)[1]

    all_lengths = jax.vmap(descent, (None, 0))
    risks, gains = jax.jit(jax.vmap(all_lengths, (0, None)))(jnp.asarray(steps), stacked_tables(log_lengths))
    windows = np.asarray(risks).reshape(len(steps), len(log_lengths), -1, plan.every).mean(axis=-1)
    ends = np.asarray(gains)[..., plan.every - 1 :: plan.every]
    by_step = zip(windows, ends, strict=True)
    return [[ExactDescent(*rows) for rows in zip(*of_one_step, strict=True)] for of_one_step in by_step]


@dataclass(frozen=True)
class StochasticDescents:
    """Stochastic descents at one length, a row a seed, beside the exact descent they should follow in the mean.

    And beside two that they should not: that of the infinite prompt, and one of longer steps.
    """

    sampling: str
    length: int
    plan: Plan
    loss: Float[np.ndarray, "seeds rows"]
    gain: Float[np.ndarray, "seeds rows"]
    exact: ExactDescent
    infinite: ExactDescent
    hasty: ExactDescent

    @property
    def end(self) -> Float[np.ndarray, " seeds"]:
        """Losses of the last window of steps."""
        return self.loss[:, -1]


def trained(
    problem: IsotropicProblem, chosen: list[tuple[str, int]], plan: Plan, *, key: PRNGKeyArray
) -> list[StochasticDescents]:
    """Descents for each (sampling, length)."""
    ells = [float(np.log(length)) for _, length in chosen]
    usual, longer = exact_descents(problem, [*ells, INFINITE], plan, (plan.step, LONGER * plan.step))
    *usual, infinite = usual
    runs = []
    for (sampling, length), exact, hasty in zip(chosen, usual, longer, strict=False):
        run_key = jr.fold_in(jr.fold_in(key, length), sampling == "plain")
        measured = stochastic(problem, length, sampling, plan, key=run_key)
        runs.append(StochasticDescents(sampling, length, plan, *measured, exact, infinite, hasty))
    return runs


def stochastic(
    problem: IsotropicProblem, length: int, sampling: str, plan: Plan, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "seeds rows"], Float[np.ndarray, "seeds rows"]]:
    """Losses and gains of descents on sampled prompts, in float32: the noise of a batch is far above its rounding."""
    start = balanced_start(np.eye(problem.task.dimension), problem.alpha)
    start = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), start)
    loss = prompt_loss(problem.task, length, batch=plan.batch(length), head=block_head, sampling=SAMPLINGS[sampling])

    @jax.jit
    @jax.vmap
    def train(key):
        return sgd(loss, start, optimiser=optax.sgd(plan.step), steps=plan.steps, every=plan.every, key=key)

    trajectory = train(jr.split(key, plan.seeds))
    return np.asarray(trajectory.loss, np.float64), np.asarray(trajectory.params.gain, np.float64)
