"""Simulated prompts, and how far both gradients of each are from those of its law.

Gaussian tokens of scale σ, U = uI and V = I. The error of ∇_V is the number of outputs times that of the output, hence
exact at any length; ∇_U sees the covariance of the tilted tokens and errs more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.attention import Attention
from lib.concentration import ErrorCurve, bilinear_gap, error_curve, sample_gaps, value_gap
from lib.measures import Empirical, Gaussian, Measure

# Of tokens, queries and outputs.
DIMENSION = 2
# Queries asked of each prompt: a query costs a fraction of the tokens it is asked of.
QUERIES = 4
# The names of the two gradients, ∇_V and ∇_U.
VALUE, BILINEAR = "value", "bilinear"


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    scales: PRNGKeyArray
    queries: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


def normal(scale: float) -> Gaussian:
    """N(0, scale² I)."""
    return Gaussian(np.zeros(DIMENSION), scale**2 * np.eye(DIMENSION))


@dataclass(frozen=True)
class Errors:
    """Both errors of the same prompts: a curve each, and the samples, whose last axis is (∇_V, ∇_U)."""

    samples: Float[np.ndarray, "prompts k 2"]
    value: ErrorCurve
    bilinear: ErrorCurve

    def curve(self, name: str) -> ErrorCurve:
        """By name."""
        return {VALUE: self.value, BILINEAR: self.bilinear}[name]


def both_gaps(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " d"]) -> Float[Array, " 2"]:
    """The gaps of ∇_V and ∇_U at one prompt and one query."""
    return jnp.stack([value_gap(params, prompt, measure, query), bilinear_gap(params, prompt, measure, query)])


def by_scale(
    scales: Sequence[float], gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, Errors]:
    """By σ: prompts of tokens of that scale, standard normal queries."""
    return {
        sigma: errors_of(sigma, gain, normal(1.0), lengths, prompts, key=jr.fold_in(key, index))
        for index, sigma in enumerate(scales)
    }


def errors_of(
    sigma: float, gain: float, queries: Gaussian, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> Errors:
    """Prompts of Gaussian tokens of scale σ."""
    params = Attention(gain * np.eye(DIMENSION), np.eye(DIMENSION))
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    samples = np.asarray(sample_gaps(both_gaps, params, normal(sigma), queries, lengths, **options))
    return Errors(samples, *(error_curve(lengths, samples[..., index]) for index in range(2)))
