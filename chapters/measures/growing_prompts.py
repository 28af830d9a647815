"""Outputs of growing prompts after their first L tokens, their limit and their predicted spread."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lib.attention import Attention, attend, fluctuation
from lib.batching import map_batched
from lib.measures import GaussianMixture, empirical, tilted_cov, tilted_mean

# Largest number of tokens in one batch of prompts: running sums are cheap, and larger batches need fewer calls.
TOGETHER = 2**19


@dataclass(frozen=True)
class InfiniteOutput:
    """Theory for the first output of long prompts, and two simpler theories.

    Attributes:
      limit: the first output of the infinite prompt.
      variance: the limit of L · Var.
      untilted: the mean without the tilt.
      counted: the limit of L · Var if `L / e^{Λ(2ξ) - 2Λ(ξ)}` tokens were averaged, each with the tilted covariance.
      correction: c in `L E(error)² = variance (1 + c/L + O(1/L²))`.
    """

    limit: float
    variance: float
    untilted: float
    counted: float
    correction: float

    def spread(self, length):
        """Return the predicted standard deviation between long prompts of this length."""
        return np.sqrt(self.variance / length)


def solve_limit_and_fluctuation(
    params: Attention, distribution: GaussianMixture, query: Float[np.ndarray, " d"]
) -> InfiniteOutput:
    """Return the limit and the fluctuation of the first output, from the distribution of the tokens.

    The output minus its limit f is A/(1 + B), with the means A of `w (y - f)` and B of `w - 1` over tokens, where y is
    the output of one token and w = e^{s - Λ(ξ)} its weight. The mean square of A (1 - B + B²) to order 1/L² gives
    `c · variance = 3 (variance Var w + 2 Cov(w (y - f), w)²) - 2 E w² (w - 1) (y - f)²`.
    """

    @jax.jit
    def compute(params, distribution, query):
        untilted = params.value @ tilted_mean(distribution, jnp.zeros(2))
        tilt, first = params.bilinear @ query, params.value[0]
        weight = jnp.exp(distribution.log_mgf(2 * tilt) - 2 * distribution.log_mgf(tilt))
        counted = weight * first @ tilted_cov(distribution, tilt) @ first
        variance = fluctuation(params, distribution, query)[0, 0]
        limit = attend(params, distribution, query)[0]

        def moments(power):
            """Return E w^p, E w^p (y - f) and E w^p (y - f)² for the power p."""
            mass = jnp.exp(distribution.log_mgf(power * tilt) - power * distribution.log_mgf(tilt))
            mean = first @ tilted_mean(distribution, power * tilt) - limit
            return mass, mass * mean, mass * (first @ tilted_cov(distribution, power * tilt) @ first + mean**2)

        (two, covariance, _), (_, _, cubed) = moments(2), moments(3)
        correction = (3 * (variance * (two - 1) + 2 * covariance**2) - 2 * (cubed - variance)) / variance
        return limit, variance, untilted[0], counted, correction

    return InfiniteOutput(*map(float, compute(params, distribution, query)))


@dataclass(frozen=True)
class PrefixOutputs:
    """First output of independent prompts after their first L tokens, for every L in `lengths`."""

    lengths: Int[np.ndarray, " k"]
    outputs: Float[np.ndarray, "prompts k"]

    @property
    def longest(self) -> int:
        """Return the largest length."""
        return int(self.lengths[-1])

    @property
    def at_longest(self) -> Float[np.ndarray, " prompts"]:
        """Return the outputs at the largest length."""
        return self.outputs[:, -1]


def lengths_up_to(longest: int) -> Int[np.ndarray, " k"]:
    """Return lengths from 1 to `longest`, evenly spaced in the logarithm, 24 per decade."""
    return np.unique(np.geomspace(1, longest, round(24 * np.log10(longest)) + 1).astype(int))


def simulate_growing_prompts(
    params: Attention,
    distribution: GaussianMixture,
    query: Float[np.ndarray, " d"],
    lengths: Int[np.ndarray, " k"] | list[int],
    prompts: int,
    *,
    key: PRNGKeyArray,
) -> PrefixOutputs:
    """Return the first output of independent prompts after their first L tokens, for every L in `lengths`."""
    lengths = np.unique(lengths)
    longest = int(lengths.max())

    def one(index):
        points = empirical(distribution, longest, key=jr.fold_in(key, index)).points
        return prefix_outputs(params, points, query, lengths)[:, 0]

    outputs = map_batched(one, jnp.arange(prompts), size=longest, numbers_at_once=TOGETHER)
    return PrefixOutputs(lengths, np.asarray(outputs))


def prefix_outputs(
    params: Attention, points: Float[Array, "n d"], query: Float[np.ndarray, " d"], lengths: Int[np.ndarray, " k"]
) -> Float[Array, "k e"]:
    """Return the output of the first L tokens of a prompt for every L in `lengths`, from running sums."""
    scores = points @ (params.bilinear @ query)
    weights = jnp.exp(scores - scores.max())[:, None]
    sums = jnp.cumsum(weights * points, axis=0)[lengths - 1] / jnp.cumsum(weights, axis=0)[lengths - 1]
    return sums @ params.value.T
