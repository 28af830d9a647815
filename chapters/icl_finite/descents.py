"""Stochastic gradient descent on new prompts, and gradient descent on the exact risk.

The exact descent changes two numbers, ‖A‖_F and b; the stochastic descent changes all entries of A.
"""

from dataclasses import dataclass

import jax
import jax.random as jr
import numpy as np
import optax
from jaxtyping import Float, PRNGKeyArray

from chapters import UNOPTIMISED
from chapters.icl_finite.exact_flows import INFINITE, IsotropicProblem, stacked_tables
from lib.flow import sgd
from lib.icl import Blocks, prompt_loss

# Largest and smallest batch; the noise of a step also changes the mean over seeds, by order step/batch.
LARGEST_BATCH, SMALLEST_BATCH = 128, 8
# Factor of the bias of the mean over seeds, see `noise_bias`: measured with 48 descents of 32 prompts per step at
# L = 16, 64 and 512 (seed 77, which no run of the book uses): at most 1.9, 1.4 and 1.9 in dimensions 2, 5 and 10.
BIAS = 2.0
# Factor of the steps of the alternative descent.
LONGER = 1.2


@dataclass(frozen=True)
class Plan:
    """Settings of the descents: step size, number of steps, steps per recorded point, seeds, tokens per step."""

    step: float
    steps: int
    every: int
    seeds: int
    tokens: int

    def batch(self, length: int) -> int:
        """Return the number of prompts per step and seed."""
        return int(np.clip(self.tokens // (length * self.seeds), SMALLEST_BATCH, LARGEST_BATCH))

    @property
    def gain_times(self) -> Float[np.ndarray, " rows"]:
        """Return the ends of the windows of steps."""
        return self.every * self.step * np.arange(1, self.steps // self.every + 1)

    @property
    def loss_times(self) -> Float[np.ndarray, " rows"]:
        """Return the middles of the windows; the loss of a step is the loss before the step."""
        return self.gain_times - self.step * (self.every + 1) / 2


@dataclass(frozen=True)
class ExactDescent:
    """Gradient descent on an exact risk: mean risk over each window of steps, and gain at its end.

    The mean of a stochastic step over prompts is a step of this descent; the flow differs from it by order `step`.
    """

    loss: Float[np.ndarray, " rows"]
    gain: Float[np.ndarray, " rows"]


def exact_descents(
    problem: IsotropicProblem, log_lengths: list[float], plan: Plan, steps: tuple[float, ...]
) -> list[list[ExactDescent]]:
    """Return, for each step, one descent per length, all in one compiled program."""

    def descent(step, scores):
        def update(params, _):
            risk, slope = jax.value_and_grad(problem.risk)(params, scores)
            params = jax.tree.map(lambda value, slope: value - step * slope, params, slope)
            return params, (risk, params.gain)

        return jax.lax.scan(update, problem.start, length=plan.steps)[1]

    all_lengths = jax.vmap(descent, (None, 0))
    all_descents = jax.jit(jax.vmap(all_lengths, (0, None)), compiler_options=UNOPTIMISED)
    risks, gains = all_descents(np.asarray(steps), stacked_tables(log_lengths))
    windows = np.asarray(risks).reshape(len(steps), len(log_lengths), -1, plan.every).mean(axis=-1)
    ends = np.asarray(gains)[..., plan.every - 1 :: plan.every]
    by_step = zip(windows, ends, strict=True)
    return [[ExactDescent(*rows) for rows in zip(*of_one_step, strict=True)] for of_one_step in by_step]


def noise_bias(plan: Plan, length: int, dimension: int) -> float:
    """Return the largest bias of the mean of stochastic descents, in standard errors of that mean.

    A step adds step² (E|noise of A|² - E(noise of b)²) to ‖A‖² - b², which the gradient flow of the infinite prompt
    conserves. With the variance of the noise proportional to 1/batch, the bias after `steps` steps is of order step² ·
    steps/batch, and the standard deviation between descents of order step · √(steps/batch). Their ratio, in standard
    errors of `seeds` descents, is `BIAS` d² √(step · time · seeds/batch), with one unknown number. The factor d² is the
    number of entries of A, whose noise adds up in ‖A‖²; b has one.
    """
    time = plan.step * plan.steps
    return float(BIAS * dimension**2 * np.sqrt(plan.step * time * plan.seeds / plan.batch(length)))


@dataclass(frozen=True)
class StochasticDescents:
    """Stochastic descents at one length, with one row per seed, and three exact descents.

    Attributes:
      dimension: dimension of the covariates.
      sampling: the way the prompts are drawn.
      length: prompt length.
      plan: settings of the descents.
      loss: mean loss over each window of steps.
      gain: gain at the end of each window.
      exact: exact descent at the same length, which the stochastic descents should follow on average.
      infinite: exact descent of the infinite prompt.
      longer_steps: exact descent at the same length with longer steps.
    """

    dimension: int
    sampling: str
    length: int
    plan: Plan
    loss: Float[np.ndarray, "seeds rows"]
    gain: Float[np.ndarray, "seeds rows"]
    exact: ExactDescent
    infinite: ExactDescent
    longer_steps: ExactDescent

    @property
    def end(self) -> Float[np.ndarray, " seeds"]:
        """Return the losses of the last window of steps."""
        return self.loss[:, -1]


def train_descents(
    problem: IsotropicProblem, settings: list[tuple[str, int]], plan: Plan, *, key: PRNGKeyArray
) -> list[StochasticDescents]:
    """Return stochastic descents for each pair (sampling, length), with their exact descents."""
    ells = [float(np.log(length)) for _, length in settings]
    same_step, longer_step = exact_descents(problem, [*ells, INFINITE], plan, (plan.step, LONGER * plan.step))
    *same_step, infinite = same_step
    runs = []
    for (sampling, length), exact, longer in zip(settings, same_step, longer_step, strict=False):
        run_key = jr.fold_in(jr.fold_in(key, length), sampling == "plain")
        measured = train_stochastic(problem, length, sampling, plan, key=run_key)
        runs.append(
            StochasticDescents(problem.task.dimension, sampling, length, plan, *measured, exact, infinite, longer)
        )
    return runs


def train_stochastic(
    problem: IsotropicProblem, length: int, sampling: str, plan: Plan, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "seeds rows"], Float[np.ndarray, "seeds rows"]]:
    """Return losses and gains of descents on sampled prompts, in float32, whose rounding is far below the noise."""
    d = problem.task.dimension
    start = Blocks(np.float32(problem.alpha / d**0.5) * np.eye(d, dtype=np.float32), np.float32(problem.alpha))
    every_token = sampling == "plain"
    loss = prompt_loss(problem.task, length, batch=plan.batch(length), head=Blocks.head, every_token=every_token)

    @jax.jit
    @jax.vmap
    def train(key):
        return sgd(loss, start, optimiser=optax.sgd(plan.step), steps=plan.steps, every=plan.every, key=key)

    trajectory = train(jr.split(key, plan.seeds))
    return np.asarray(trajectory.loss, np.float64), np.asarray(trajectory.params.gain, np.float64)
