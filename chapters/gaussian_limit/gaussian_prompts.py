"""Outputs of finite Gaussian prompts for the same growing queries."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.parameters import ENOUGH_PROMPTS
from lib.attention import Attention
from lib.batching import map_batched
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, GaussianMixture, empirical


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
    """Return the responses of prompts of `length` Gaussian tokens; the memory is that of one long prompt."""

    def one_prompt(index):
        prompt = empirical(ray.gaussian, length, key=jr.fold_in(key, index))

        def one_query(query):
            weights = jax.nn.softmax(prompt.points @ (ray.params.bilinear @ query))
            return ray.read(ray.params.value @ (weights @ prompt.points)), jnp.sum(weights**2)

        largest = jnp.max(ray.read(prompt.points @ ray.params.value.T))
        return *map_batched(one_query, ray.queries(taus), size=length), largest

    columns = map_batched(one_prompt, jnp.arange(prompts), size=length * taus.size)
    return Responses(np.asarray(taus), *map(np.asarray, columns))


def well_sampled(responses: Mapping[int, Responses]) -> dict[int, Responses]:
    """Return the lengths with enough prompts for a test; the budget of tokens leaves at least one."""
    return {length: sample for length, sample in responses.items() if len(sample.response) >= ENOUGH_PROMPTS}
