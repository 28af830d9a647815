"""The published protocol: covariances of the data, model, heads, and length of the training.

All risks of this chapter and of `second_minima` are plain mean squares with the label noise, as in the published code.
"""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from chapters.published_experiment.batches import LINEAR, SOFTMAX
from lib.attention import Attention
from lib.icl import LinearRegression

T = TypeVar("T", float, np.ndarray)

LAWS = {"corrected": False, "as published": True}
POOLS = {"softmax": SOFTMAX, "linear": LINEAR}
# Width of the published model's matrices, and number and size of its steps, whose product is the training time.
WIDTH, PUBLISHED_STEPS, PUBLISHED_STEP_SIZE = 6, 300_000, 1e-3
# A run has reached a level if it ends at most this far from it, relatively: the noise of short runs leaves about one
# percent, and other stationary heads are at least half again above the optimum.
CLOSE = 0.03
NOISE = "noise of training leaves about one percent, and other solutions are much farther above the optimum"


def keys_of_tracked_run(start: int | Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Return the keys of the weights and of the prompts of a tracked run from the start with this number.

    They are the two halves of the key of this seed. Simulations in notebooks have named keys instead, which would give
    other runs here, and the tracked runs took many core-hours.
    """
    weights_key, prompts_key = jr.split(jr.key(start))
    return weights_key, prompts_key


def law_of(covariance_bug: bool) -> str:
    """Return the name of the covariances of the data."""
    return "as published" if covariance_bug else "corrected"


def published_task(covariance_bug: bool = False) -> LinearRegression:
    """Return the published data: d = 5, covariates of covariance C = 0.5^|i-j|, tasks N(0, I/5), label noise 0.1.

    The published code multiplies the prompt's covariates twice by F = chol(C) and the query's never: prompts then have
    covariance FCFᵀ and queries I. `covariance_bug` restores these covariances.
    """
    cov = 0.5 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    factor = np.linalg.cholesky(cov)
    prompt_cov, query_cov = (factor @ cov @ factor.T, np.eye(5)) if covariance_bug else (cov, cov)
    return LinearRegression(prompt_cov, query_cov, task_scale=5**-0.5, noise_std=0.1**0.5)


def noise_power() -> float:
    """Return the variance of the label noise, the least mean square on an infinite prompt."""
    return float(published_task().noise_std) ** 2


def above_noise(mean_square: T) -> T:
    """Return a mean square less the label noise, which no head can predict and which is all that is left at L = ∞."""
    return mean_square - noise_power()


class SeparateWeights(eqx.Module):
    """The published model: query, key and value matrices p×p and an output row, without biases, p = d + 1."""

    query: Float[Array, "*rows p p"]
    key: Float[Array, "*rows p p"]
    value: Float[Array, "*rows p p"]
    output: Float[Array, "*rows 1 p"]

    @classmethod
    def draw(cls, size: int, *, key: PRNGKeyArray, dtype: Any = jnp.float32) -> "SeparateWeights":
        """Draw the weights of PyTorch's default linear layers: uniform in ±1/√fan_in."""
        bound = size**-0.5

        def uniform(key, rows):
            return jr.uniform(key, (rows, size), dtype, -bound, bound)

        keys = jr.split(key, 4)
        return cls(*jax.vmap(lambda key: uniform(key, size))(keys[:3]), uniform(keys[3], 1))


def published_head(weights: SeparateWeights) -> Attention:
    """Return the published model's head, whose scores are divided by √p: `U = KᵀQ/√p`, `V = O V`."""
    return Attention(weights.key.T @ weights.query / weights.query.shape[-1] ** 0.5, weights.output @ weights.value)
