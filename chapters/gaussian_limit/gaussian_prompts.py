"""Outputs of finite Gaussian prompts for the same growing queries."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.parameters import ENOUGH_PROMPTS
from lib.attention import Attention
from lib.batching import in_batches
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, GaussianMixture, empirical

# How many tokens are weighted at once: arrays of so many numbers fit a processor's cache.
TOKENS_TOGETHER = 2**14


def query_ray() -> QueryRay:
    """Return a head on Gaussian tokens: three dimensions, two outputs, no symmetry, tokens not centred."""
    params = Attention([[0.9, 0.3, -0.2], [-0.4, 0.7, 0.1], [0.2, 0.1, 0.8]], [[1.0, 0.5, -0.3], [-0.2, 0.8, 0.6]])
    gaussian = Gaussian([0.5, -0.3, 0.2], [[1.0, 0.4, -0.2], [0.4, 0.8, 0.3], [-0.2, 0.3, 0.6]])
    return QueryRay.through(params, gaussian, jnp.asarray([1.0, 0.6, 0.3]))


def query_distribution() -> Gaussian:
    """Return the distribution of the queries, which is not centred and not isotropic."""
    return Gaussian([0.3, -0.2, 0.4], [[2.0, 0.5, -0.3], [0.5, 1.5, 0.4], [-0.3, 0.4, 1.0]])


def two_clusters(gaussian: Gaussian) -> GaussianMixture:
    """Return a mixture of two clusters of unequal weight with the mean and the covariance of `gaussian`."""
    weights, spread = jnp.asarray([0.3, 0.7]), 0.9
    # The centres differ along Γe₁ and have the fraction `spread²` of the first variance; the rest is a covariance.
    along = spread * gaussian.cov[0] / jnp.sqrt(gaussian.cov[0, 0])
    means = gaussian.mean + jnp.outer(jnp.sqrt(weights[::-1] / weights) * jnp.asarray([1.0, -1.0]), along)
    covs = jnp.broadcast_to(gaussian.cov - jnp.outer(along, along), (2, *gaussian.cov.shape))
    return GaussianMixture(jnp.log(weights), Gaussian(means, covs))


@dataclass(frozen=True)
class Responses:
    """Prompts of one length: response and `Σ p²` of the weights for each query, and the largest token."""

    taus: Float[np.ndarray, " queries"]
    response: Float[np.ndarray, "prompts queries"]
    squared_weights: Float[np.ndarray, "prompts queries"]
    largest_token: Float[np.ndarray, " prompts"]


def query_sizes(largest: float, n: int) -> Float[Array, " queries"]:
    """Return `n` query sizes τ from 0 to `largest`."""
    return jnp.linspace(0.0, largest, n)


def simulate_responses(
    ray: QueryRay, taus: Float[Array, " queries"], counts: Mapping[int, int], *, key: PRNGKeyArray
) -> dict[int, Responses]:
    """Return, for each length, the responses of `counts[length]` prompts to queries of all sizes."""
    return {length: _respond(ray, taus, length, count, key=jr.fold_in(key, length)) for length, count in counts.items()}


def _respond(
    ray: QueryRay, taus: Float[Array, " queries"], length: int, prompts: int, *, key: PRNGKeyArray
) -> Responses:
    """Return the responses of prompts of `length` Gaussian tokens; the memory is that of a few prompts."""

    @jax.jit
    @jax.vmap
    def draw(index):
        """Return the scores of the query of size 1, and the tokens' coordinates along the line of outputs."""
        tokens = empirical(ray.gaussian, length, key=jr.fold_in(key, index)).points
        return tokens @ (ray.params.bilinear @ ray.direction), ray.read(tokens @ ray.params.value.T)

    def respond(indices):
        scores, coordinates = map(np.asarray, draw(indices))
        return *_softmax_means(scores, coordinates, np.asarray(taus)), coordinates.max(axis=1)

    together = max(1, min(prompts, TOKENS_TOGETHER // length))
    return Responses(np.asarray(taus), *in_batches(respond, np.arange(prompts), batch=together))


def _softmax_means(
    scores: Float[np.ndarray, "prompts tokens"],
    coordinates: Float[np.ndarray, "prompts tokens"],
    taus: Float[np.ndarray, " queries"],
) -> tuple[Float[np.ndarray, "prompts queries"], Float[np.ndarray, "prompts queries"]]:
    """Return `Σ p c` and `Σ p²` of the weights p = softmax(τ s), from τ to τ; equal steps share their exponentials."""
    total, mean, squares = np.zeros((3, taus.size, len(scores)))
    steps = np.diff(taus, prepend=0.0)
    centred = scores - scores.max(axis=1, keepdims=True)
    for start in range(0, scores.shape[1], TOKENS_TOGETHER):
        some = slice(start, start + TOKENS_TOGETHER)
        score, coordinate = centred[:, some], coordinates[:, some]
        weights, ratio, last = np.ones_like(score), 1.0, 0.0
        for k, step in enumerate(steps):
            if not math.isclose(step, last, rel_tol=1e-12):
                ratio, last = np.exp(step * score), step
            weights *= ratio
            total[k] += weights.sum(axis=1)
            mean[k] += np.einsum("pi,pi->p", weights, coordinate)
            squares[k] += np.einsum("pi,pi->p", weights, weights)
    return (mean / total).T, (squares / total**2).T


def well_sampled(responses: Mapping[int, Responses]) -> dict[int, Responses]:
    """Return the lengths with enough prompts for a test; the budget of tokens leaves at least one."""
    return {length: sample for length, sample in responses.items() if len(sample.response) >= ENOUGH_PROMPTS}
