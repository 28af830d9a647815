"""Simulated prompts, taken apart: the error of each, and what the proof of [BB26, Prop. 3.1] makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import log_ndtr

from chapters.output_concentration.experiment import DIMENSION, QUERIES, SPREAD, clusters, head, isotropic
from lib.attention import Attention, attend
from lib.concentration import ByImportance, ErrorCurve, error_curve, log_chi_density, sample_gaps
from lib.measures import Empirical, Measure

# A weighted mean of vectors may pass the longest of them by this share of its length, in double precision.
ROUNDING = 1e-9


class Anatomy(NamedTuple):
    """A gap and what the proof makes of it, with the truncation M = L^κ: of one prompt and query, or of many."""

    gap: Float[Array, "..."]
    """`‖T[μ̂_L](z) - T[μ](z)‖²`."""
    above: Float[Array, "..."]
    """1 if the largest weight passes M, else 0."""
    gap_above: Float[Array, "..."]
    """The gap if it does, else 0."""
    ceiling_above: Float[Array, "..."]
    """The proof's bound `(max_i ‖Vz_i‖ + ‖T[μ](z)‖)²` if it does, else 0."""
    longer: Float[Array, "..."]
    """1 if the output is longer than `max_i ‖Vz_i‖`, by more than rounding, else 0."""
    limit_longer: Float[Array, "..."]
    """1 if the limit is, else 0."""


class TakeApart(eqx.Module):
    """The verb, as a gap for `sample_gaps`."""

    truncation: float = eqx.field(static=True)

    def __call__(self, params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " d"]) -> Anatomy:
        """Of one prompt and one query."""
        answer, limit = attend(params, prompt, query), attend(params, measure, query)
        answer_size, limit_size = jnp.linalg.norm(jnp.stack([answer, limit]), axis=1)
        largest = jnp.sqrt(jnp.max(jnp.sum((prompt.points @ params.value.T) ** 2, axis=1)))
        highest = jnp.max(prompt.points @ (params.bilinear @ query))
        above = jnp.where(highest > self.truncation * jnp.log(prompt.points.shape[0]), 1.0, 0.0)
        gap = jnp.sum((answer - limit) ** 2)
        return Anatomy(
            gap=gap,
            above=above,
            gap_above=gap * above,
            ceiling_above=(largest + limit_size) ** 2 * above,
            longer=jnp.where(answer_size > (1 + ROUNDING) * largest, 1.0, 0.0),
            limit_longer=jnp.where(limit_size > (1 + ROUNDING) * largest, 1.0, 0.0),
        )


@dataclass(frozen=True)
class Parts:
    """Of prompts of one token law: the anatomy of each (rows) at each length, in the weighted mean over its queries."""

    lengths: Sequence[int]
    samples: Anatomy

    @property
    def error(self) -> ErrorCurve:
        """The mean gap at each length."""
        return error_curve(self.lengths, self.samples.gap)


def by_scale(
    scales: Sequence[float], gain: float, truncation: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, Parts]:
    """By σ: prompts of Gaussian tokens of that scale, each asked standard normal queries of its own."""

    def take_apart(law, key):
        options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
        apart, wide = ByImportance(TakeApart(truncation), SPREAD), isotropic(DIMENSION, SPREAD)
        samples = sample_gaps(apart, head(gain), law, wide, lengths, **options)
        return Parts(lengths, jax.tree.map(np.asarray, samples))

    return {sigma: take_apart(clusters(sigma, within=1.0), jr.fold_in(key, i)) for i, sigma in enumerate(scales)}


def share_above(
    operator_norm: float, dimension: int, truncation: float, length: float | Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """`P(max_i ⟨Uz, z_i⟩ > κ ln L) = E[1 - Φ(κ ln L / H‖z‖)^L]`, the outer mean over ‖z‖ by a trapezoid."""
    radius = np.linspace(0.0, 12.0 + np.sqrt(dimension), 6001)[1:, None]
    tail = share_above_given(operator_norm * radius, truncation, length)
    return np.trapezoid(tail * np.exp(log_chi_density(radius, dimension)), radius, axis=0)


def share_above_given(
    tau: float | Float[np.ndarray, "n 1"], truncation: float, length: float | Float[np.ndarray, " k"]
) -> Float[np.ndarray, "*n k"]:
    """The same of a query of size τ: `1 - Φ(κ ln L / τ)^L`."""
    return -np.expm1(length * log_ndtr(truncation * np.log(length) / tau))
