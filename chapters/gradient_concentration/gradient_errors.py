"""Simulated prompts, and how far both gradients of each are from those of its law.

Gaussian tokens of scale σ, U = uI and V = I. The error of ∇_V is the number of outputs times that of the output, hence
exact at any length; ∇_U sees the covariance of the tilted tokens and errs more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.attention import Attention
from lib.concentration import ByImportance, ErrorCurve, bilinear_gap, error_curve, sample_gaps, value_gap
from lib.measures import Empirical, Gaussian, Measure

# Of tokens, queries and outputs.
DIMENSION = 2
# Queries asked of each prompt: a query costs a fraction of the tokens it is asked of.
QUERIES = 4
# Queries are drawn from N(0, SPREAD² I) and weighted back to N(0, I): the mean errors rest on long ones.
SPREAD = 2**0.5
# The names of the two gradients, ∇_V and ∇_U.
VALUE, BILINEAR = "value", "bilinear"


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    scales: PRNGKeyArray
    queries: PRNGKeyArray
    single: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


class BothGaps(NamedTuple):
    """The gaps of ∇_V and ∇_U: of one prompt and one query, or of many."""

    value: Float[Array, "..."]
    bilinear: Float[Array, "..."]


def both_gaps(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " d"]) -> BothGaps:
    """At one prompt and one query."""
    return BothGaps(value_gap(params, prompt, measure, query), bilinear_gap(params, prompt, measure, query))


@dataclass(frozen=True)
class PairedErrors:
    """Both errors of the same prompts: their gaps, a row a prompt and a column a length."""

    lengths: Sequence[int]
    samples: BothGaps

    def curve(self, name: str) -> ErrorCurve:
        """The mean error of one gradient, by name."""
        return error_curve(self.lengths, self.samples._asdict()[name])

    @property
    def log_ratio(self) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
        """`ln` of the error of ∇_U over that of ∇_V at each length, and its covariance: the prompts are the same."""
        value, bilinear = (samples.mean(axis=0) for samples in self.samples)
        difference = self.samples.bilinear / bilinear - self.samples.value / value
        return np.log(bilinear / value), np.cov(difference, rowvar=False) / len(difference)


def normal(scale: float) -> Gaussian:
    """N(0, scale² I)."""
    return Gaussian(np.zeros(DIMENSION), scale**2 * np.eye(DIMENSION))


def point(norm: float) -> Gaussian:
    """The query of this length, as a law without width: of the type of `normal`, so that nothing compiles twice."""
    return Gaussian(norm * np.eye(DIMENSION)[0], np.zeros((DIMENSION, DIMENSION)))


def by_scale(
    scales: Sequence[float], gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, PairedErrors]:
    """By σ: prompts of tokens of that scale, standard normal queries."""
    return {
        sigma: errors_of(
            normal(sigma), normal(SPREAD), gain, lengths, prompts, spread=SPREAD, key=jr.fold_in(key, index)
        )
        for index, sigma in enumerate(scales)
    }


def by_query(
    taus: Sequence[float], gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, PairedErrors]:
    """By τ: prompts of tokens of scale 1, all asked the one query of that size."""
    return {
        tau: errors_of(normal(1.0), point(tau / gain), gain, lengths, prompts, spread=1.0, key=jr.fold_in(key, index))
        for index, tau in enumerate(taus)
    }


def errors_of(
    law: Gaussian,
    queries: Gaussian,
    gain: float,
    lengths: Sequence[int],
    prompts: int,
    *,
    spread: float,
    key: PRNGKeyArray,
) -> PairedErrors:
    """Prompts of tokens of `law`, each asked queries of its own, which are weighted as if `spread` were 1."""
    params = Attention(gain * np.eye(DIMENSION), np.eye(DIMENSION))
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    samples = sample_gaps(ByImportance(both_gaps, spread), params, law, queries, lengths, **options)
    return PairedErrors(lengths, jax.tree.map(np.asarray, samples))
