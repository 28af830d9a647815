"""Outputs of finite Gaussian prompts for the same growing queries."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt

from chapters.gaussian_limit.drawn_numbers import TOGETHER, normals, prompt_keys
from chapters.gaussian_limit.parameters import ENOUGH_PROMPTS
from lib.attention import Attention, attend
from lib.batching import in_batches
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, GaussianMixture, Measure

# How many tokens are weighted at once: arrays of so many numbers fit a processor's cache.
TOKENS_TOGETHER = 2**14
# How many queries of the infinite prompt are computed at once.
QUERIES_TOGETHER = 2**9


def query_ray() -> QueryRay:
    """Return a head on Gaussian tokens: three dimensions, two outputs, no symmetry, tokens not centred.

    Its arrays are NumPy's, with which arithmetic compiles nothing.
    """
    params = Attention([[0.9, 0.3, -0.2], [-0.4, 0.7, 0.1], [0.2, 0.1, 0.8]], [[1.0, 0.5, -0.3], [-0.2, 0.8, 0.6]])
    gaussian = Gaussian([0.5, -0.3, 0.2], [[1.0, 0.4, -0.2], [0.4, 0.8, 0.3], [-0.2, 0.3, 0.6]])
    return jax.tree.map(np.asarray, QueryRay.through(params, gaussian, jnp.asarray([1.0, 0.6, 0.3])))


def query_distribution() -> Gaussian:
    """Return the distribution of the queries, which is not centred and not isotropic."""
    return Gaussian([0.3, -0.2, 0.4], [[2.0, 0.5, -0.3], [0.5, 1.5, 0.4], [-0.3, 0.4, 1.0]])


def two_clusters(gaussian: Gaussian) -> GaussianMixture:
    """Return a mixture of two clusters of unequal weight with the mean and the covariance of `gaussian`."""
    mean, cov = np.asarray(gaussian.mean), np.asarray(gaussian.cov)
    weights, spread = np.asarray([0.3, 0.7]), 0.9
    # The centres differ along Γe₁ and have the fraction `spread²` of the first variance; the rest is a covariance.
    along = spread * cov[0] / np.sqrt(cov[0, 0])
    means = mean + np.outer(np.sqrt(weights[::-1] / weights) * np.asarray([1.0, -1.0]), along)
    return GaussianMixture(np.log(weights), Gaussian(means, np.stack([cov - np.outer(along, along)] * 2)))


def infinite_outputs(
    params: Attention, measure: Measure, queries: Float[Array | np.ndarray, "n d"]
) -> Float[np.ndarray, "n e"]:
    """Return the outputs of the infinite prompt, by one program for all measures of one type."""
    return in_batches(partial(_attend_each, params, measure), np.asarray(queries), batch=QUERIES_TOGETHER)


@jax.jit
def _attend_each(params: Attention, measure: Measure, queries: Float[Array, "n d"]) -> Float[Array, "n e"]:
    return jax.vmap(partial(attend, params, measure))(queries)


def token_root(gaussian: Gaussian) -> Float[np.ndarray, "d d"]:
    """Return the matrix R of the tokens `mean + R g`, g normal, that `gaussian.sample` draws."""
    eigenvalues, vectors = np.linalg.eigh(np.asarray(gaussian.cov))
    return vectors * np.sqrt(np.maximum(eigenvalues, 0.0))


def scores_and_coordinates(
    ray: QueryRay, centred: Float[np.ndarray, "*n 3"]
) -> tuple[Float[np.ndarray, "*n"], Float[np.ndarray, "*n"]]:
    """Return scores of the query of size 1, up to a constant, and coordinates along the line, of centred tokens."""
    line = ray.line
    return centred @ (ray.params.bilinear @ ray.direction), centred @ (ray.params.value.T @ line) / (line @ line)


@dataclass(frozen=True)
class Responses:
    """Prompts of one length: response and `Σ p²` of the weights for each query, and the largest token."""

    taus: Float[np.ndarray, " queries"]
    response: Float[np.ndarray, "prompts queries"]
    squared_weights: Float[np.ndarray, "prompts queries"]
    largest_token: Float[np.ndarray, " prompts"]


def query_sizes(largest: float, n: int) -> Float[np.ndarray, " queries"]:
    """Return `n` query sizes τ from 0 to `largest`."""
    return np.linspace(0.0, largest, n)


def simulate_responses(
    ray: QueryRay, taus: Float[Array | np.ndarray, " queries"], counts: Mapping[int, int], *, key: PRNGKeyArray
) -> dict[int, Responses]:
    """Return, for each length, the responses of `counts[length]` prompts to queries of all sizes."""
    taus = np.asarray(taus)
    return {length: _respond(ray, taus, length, count, key=jr.fold_in(key, length)) for length, count in counts.items()}


def _respond(
    ray: QueryRay, taus: Float[np.ndarray, " queries"], length: int, prompts: int, *, key: PRNGKeyArray
) -> Responses:
    """Return the responses of prompts of `length` Gaussian tokens; the memory is that of a few prompts."""
    root = token_root(ray.gaussian)

    def respond(keys: UInt[np.ndarray, "n 2"]):
        centred = normals(keys, 3 * length).reshape(len(keys), length, 3) @ root.T
        scores, coordinates = scores_and_coordinates(ray, centred)
        return *softmax_means(scores, coordinates, taus), coordinates.max(axis=1)

    together = max(1, min(prompts, TOGETHER // (3 * length)))
    return Responses(taus, *in_batches(respond, prompt_keys(key, prompts), batch=together))


def softmax_means(
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
