"""Gradient descent and SGD at one of the paper's settings, for comparison with L-BFGS.

The runs use the prompts, the random starts and the ridges of the tracked `published_runs`, so that they are compared
run by run. They are tracked in `data/` as `plain_runs`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import pandas as pd
from jaxtyping import Array, Int, PRNGKeyArray

from chapters.finite_samples import training
from chapters.finite_samples.published_settings import RANDOM_STARTS, SPIKED, tasks
from lib.single_location import Activation, Head

PANEL, DIMENSION, ALPHAS = SPIKED, RANDOM_STARTS, (0.5, 1.0, 2.0, 5.0, 10.0)
# Gradient descent stops at a gradient of size `gradient_tolerance`, or after `steps` steps.
DESCENT = {"steps": 3000, "gradient_tolerance": 1e-4}
# SGD takes the same number of steps at every sample ratio, in batches of `BATCH`; its first step depends on the head.
SGD_STEPS, BATCH, FIRST_STEPS = 20_000, 16, {"softmax": 0.3, "linear": 0.1}
HOW = {"descent": DESCENT, "sgd": {"steps": SGD_STEPS, "batch": BATCH, "first_steps": FIRST_STEPS}}


def full_descent(head: str, n: int) -> Mapping[str, Any]:
    """Return the arguments of `simulate_erm` for gradient descent on all prompts."""
    return {"descent_steps": DESCENT["steps"], "gradient_tolerance": DESCENT["gradient_tolerance"]}


def stochastic_descent(head: str, n: int) -> Mapping[str, Any]:
    """Return the arguments of `simulate_erm` for SGD with `SGD_STEPS` steps on `n` prompts."""
    epochs = round(SGD_STEPS / (n // BATCH))
    return {"trainer": stochastic_trainer(epochs=epochs, batch=BATCH, step_size=FIRST_STEPS[head])}


def stochastic_trainer(*, epochs: int, batch: int, step_size: float) -> Callable:
    """Return a trainer by stochastic gradient descent on shuffled batches, with steps that decrease linearly to zero.

    Each of `epochs` passes has another shuffle, and what is left of it beyond whole batches is not used. `step_size` is
    the first step, against the gradient summed over a batch, which is `batch` times the mean.
    """

    def train(
        activation: Activation, prompts: Any, ridge: tuple[float, float], head: Head, key: PRNGKeyArray
    ) -> tuple[Head, Int[Array, ""]]:
        n, dimension = prompts.labels.size, head.key.size
        batch_ridge = (ridge[0] * batch / n, ridge[1] * batch / n)
        rounds = n // batch

        def objective(head, subset):
            penalty = 0.5 * (batch_ridge[0] * head.key @ head.key + batch_ridge[1] * head.value @ head.value)
            loss = 0.5 * jnp.mean((subset.labels - subset.outputs(activation, head)) ** 2)
            return (subset.labels.size * loss + penalty) / dimension

        def step(head, batch_and_size):
            rows, length = batch_and_size
            slope = jax.grad(objective)(head, jax.tree.map(lambda leaf: leaf[rows], prompts))
            return jax.tree.map(
                lambda parameter, downhill: parameter - length * dimension * downhill, head, slope
            ), None

        def epoch(head, index):
            shuffled = jr.permutation(jr.fold_in(key, index), n)[: rounds * batch].reshape(rounds, batch)
            remaining = 1.0 - (index * rounds + jnp.arange(rounds)) / (epochs * rounds)
            return jax.lax.scan(step, head, (shuffled, step_size * remaining))[0], None

        head, _ = jax.lax.scan(epoch, head, jnp.arange(epochs))
        return head, jnp.asarray(epochs * rounds)

    return train


METHODS: Mapping[str, Callable[[str, int], Mapping[str, Any]]] = {
    "gradient descent": full_descent,
    "SGD": stochastic_descent,
}


def select_same_prompts(published_runs: pd.DataFrame) -> pd.DataFrame:
    """Return the L-BFGS runs on the prompts of gradient descent and SGD, from both starts."""
    in_panel = (published_runs["dimension"] == DIMENSION) & (published_runs["panel"] == PANEL)
    return published_runs[in_panel & published_runs["alpha"].isin(ALPHAS)]


def train(method: str, head: str, *, alpha: float, ridge: tuple[float, float], seeds: Sequence[int]) -> Any:
    """Return the results of one training run per seed, from a random start, stacked."""
    how = {"alpha": alpha, "ridge": ridge, "dimension": DIMENSION, "task": tasks()[PANEL]}
    return training.train(head, "uninformed", seeds=seeds, **how, **METHODS[method](head, round(alpha * DIMENSION)))
