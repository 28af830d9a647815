"""Deviations of attention from Lemma 2.1: rounding for infinite prompts, the fluctuation for finite ones."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt
from scipy.special import softmax

from chapters.gaussian_limit.drawn_numbers import TOGETHER, normals, prompt_keys
from chapters.gaussian_limit.gaussian_prompts import token_root
from lib.attention import Attention, attend, fluctuation
from lib.batching import in_batches
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, tilted_cov
from lib.random import normal

RATE_TAU = 0.5


@dataclass(frozen=True)
class LemmaErrors:
    """Relative errors on random Gaussians, of the lemma and of linear attention (which has `E zzᵀ = Γ + mmᵀ`)."""

    dims: tuple[int, ...]
    lemma: Float[np.ndarray, " n"]
    linear: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class RateErrors:
    """L times the squared errors of prompts of one length, and two predictions of their mean.

    Attributes:
      length: tokens per prompt.
      errors: L times the squared error of each prompt.
      predicted: the prediction of `fluctuation`.
      counted: the prediction if `L / e^{Λ(2ξ) - 2Λ(ξ)}` tokens were averaged, each with the tilted covariance.
    """

    length: int
    errors: Float[np.ndarray, " prompts"]
    predicted: float
    counted: float


def simulate_lemma_errors(gaussians: int, *, key: PRNGKeyArray) -> LemmaErrors:
    """Compare `attend` with `V(m + ΓUz)` in NumPy, on random Gaussians of every rank."""
    dims = (1, 2, 5)
    blocks = np.asarray(normal(key, (len(dims), gaussians, 3 * max(dims) + 2, max(dims))))
    cases = [_cases(block[:, : 3 * d + 2, :d]) for d, block in zip(dims, blocks, strict=True)]
    # one program for all dimensions
    outputs = jax.jit(lambda cases: [jax.vmap(_output)(*each) for each in cases])(cases)
    errors = [_lemma_errors(each, np.asarray(output)) for each, output in zip(cases, outputs, strict=True)]
    lemma, linear = (np.concatenate([error[kind] for error in errors]) for kind in (0, 1))
    return LemmaErrors(dims, lemma, linear)


class _Cases(NamedTuple):
    """Random heads, Gaussians and queries."""

    bilinear: Float[np.ndarray, "n d d"]
    value: Float[np.ndarray, "n d d"]
    mean: Float[np.ndarray, "n d"]
    cov: Float[np.ndarray, "n d d"]
    query: Float[np.ndarray, "n d"]


def _cases(entries: Float[np.ndarray, "n entries d"]) -> _Cases:
    n, _, d = entries.shape
    root, bilinear, value, vectors = np.split(entries, (d, 2 * d, 3 * d), axis=1)
    root = root * (np.arange(d) < np.arange(n)[:, None] % (d + 1))[:, None, :]
    return _Cases(bilinear, value, vectors[:, 0], root @ np.swapaxes(root, 1, 2), vectors[:, 1])


def _output(bilinear, value, mean, cov, query) -> Float[Array, " d"]:
    return attend(Attention(bilinear, value), Gaussian(mean, cov), query)


def _lemma_errors(cases: _Cases, outputs: Float[np.ndarray, "n d"]) -> tuple[np.ndarray, np.ndarray]:
    bilinear, value, mean, cov, query = cases
    constant = np.einsum("nij,nj->ni", value, mean)
    slope = np.einsum("nij,njk,nkl,nl->ni", value, cov, bilinear, query)
    size = np.linalg.norm(constant, axis=1) + np.linalg.norm(slope, axis=1)
    uncentred = slope + constant * np.einsum("nj,njk,nk->n", mean, bilinear, query)[:, None]
    lemma, linear = (np.linalg.norm(outputs - theory, axis=1) / size for theory in (constant + slope, uncentred))
    return lemma, linear


def simulate_rate_errors(ray: QueryRay, length: int, prompts: int, *, key: PRNGKeyArray) -> RateErrors:
    """Return L · squared error of finite prompts around the lemma, with two predictions of its mean."""
    query = ray.queries(RATE_TAU)
    limit, predicted, counted = map(np.asarray, _predictions(ray, query))
    root, mean = token_root(ray.gaussian), ray.gaussian.mean

    def errors(keys: UInt[np.ndarray, "n 2"]) -> Float[np.ndarray, " n"]:
        drawn = normals(keys, 3 * length).reshape(len(keys), length, 3)
        weights = softmax(drawn @ (root.T @ ray.params.bilinear @ np.asarray(query)), axis=1)
        means = mean + (weights[:, None] @ drawn)[:, 0] @ root.T
        return np.sum((means @ ray.params.value.T - limit) ** 2, axis=1)

    of_prompts = in_batches(errors, prompt_keys(key, prompts), batch=max(1, TOGETHER // (3 * length)))
    return RateErrors(length, length * of_prompts, float(predicted), float(counted))


@jax.jit
def _predictions(ray: QueryRay, query: Float[Array, " q"]) -> tuple[Array, Array, Array]:
    """Return the output of the infinite prompt, and the two predictions of `RateErrors`."""
    tilt = ray.params.bilinear @ query
    weight = jnp.exp(ray.gaussian.log_mgf(2 * tilt) - 2 * ray.gaussian.log_mgf(tilt))
    tilted = jnp.trace(ray.params.value @ tilted_cov(ray.gaussian, tilt) @ ray.params.value.T)
    predicted = jnp.trace(fluctuation(ray.params, ray.gaussian, query))
    return attend(ray.params, ray.gaussian, query), predicted, weight * tilted
