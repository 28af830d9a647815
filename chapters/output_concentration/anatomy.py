"""Simulated prompts, taken apart: the error of each, and what the proof of [BB26, Prop. 3.1] makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.output_concentration.scene import DIMENSION, QUERIES, clusters, head, isotropic
from lib.attention import Attention, attend
from lib.concentration import ErrorCurve, error_curve, sample_gaps
from lib.measures import Empirical, Measure


class Anatomy(eqx.Module):
    """A gap and what the proof makes of it, with the truncation M = L^κ.

    The gap; whether the largest weight passes M; the gap if it does; then also the proof's bound
    `(max_i ‖Vz_i‖ + ‖T[μ](z)‖)²`; by how much the output, and the limit, pass `max_i ‖Vz_i‖`.
    """

    truncation: float = eqx.field(static=True)

    def __call__(
        self, params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " d"]
    ) -> Float[Array, " 6"]:
        """Of one prompt and one query."""
        answer, limit = attend(params, prompt, query), attend(params, measure, query)
        sizes = jnp.linalg.norm(jnp.stack([answer, limit]), axis=1)
        largest = jnp.sqrt(jnp.max(jnp.sum((prompt.points @ params.value.T) ** 2, axis=1)))
        highest = jnp.max(prompt.points @ (params.bilinear @ query))
        above = highest > self.truncation * jnp.log(prompt.points.shape[0])
        gap = jnp.sum((answer - limit) ** 2)
        excess = jnp.maximum(sizes - largest, 0.0)
        return jnp.stack([gap, above, gap * above, (largest + sizes[1]) ** 2 * above, *excess])


GAP, ABOVE, GAP_ABOVE, CEILING_ABOVE, EXCESS, LIMIT_EXCESS = range(6)


@dataclass(frozen=True)
class Parts:
    """Of prompts of one token law, at each length: what `Anatomy` says, in the mean over the queries of a prompt."""

    lengths: Sequence[int]
    samples: Float[np.ndarray, "prompts k parts"]

    def of(self, part: int) -> Float[np.ndarray, "prompts k"]:
        """One part, such as GAP."""
        return self.samples[..., part]

    @property
    def error(self) -> ErrorCurve:
        """The mean gap at each length."""
        return error_curve(self.lengths, self.of(GAP))


def by_scale(
    scales: Sequence[float], gain: float, truncation: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, Parts]:
    """By σ: prompts of Gaussian tokens of that scale."""
    return {
        sigma: take_apart(clusters(sigma, within=1.0), gain, truncation, lengths, prompts, key=jr.fold_in(key, i))
        for i, sigma in enumerate(scales)
    }


def take_apart(
    law: Measure, gain: float, truncation: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> Parts:
    """Prompts of tokens of `law`, each asked standard normal queries of its own."""
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    samples = sample_gaps(Anatomy(truncation), head(gain), law, isotropic(DIMENSION), lengths, **options)
    return Parts(lengths, np.asarray(samples))
