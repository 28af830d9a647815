"""Deviations of attention from Lemma 2.1: rounding for infinite prompts, the fluctuation for finite ones."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.attention import Attention, attend, fluctuation
from lib.batching import map_batched
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, empirical, tilted_cov
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
    normals = np.asarray(normal(key, (len(dims), gaussians, 3 * max(dims) + 2, max(dims))))
    errors = [_lemma_errors(block[:, : 3 * d + 2, :d]) for d, block in zip(dims, normals, strict=True)]
    lemma, linear = (np.concatenate([error[case] for error in errors]) for case in (0, 1))
    return LemmaErrors(dims, lemma, linear)


def _lemma_errors(normals: Float[np.ndarray, "n entries d"]) -> tuple[np.ndarray, np.ndarray]:
    n, _, d = normals.shape
    root, bilinear, value, vectors = np.split(normals, (d, 2 * d, 3 * d), axis=1)
    root = root * (np.arange(d) < np.arange(n)[:, None] % (d + 1))[:, None, :]
    cov, mean, query = root @ np.swapaxes(root, 1, 2), vectors[:, 0], vectors[:, 1]

    def one(bilinear, value, mean, cov, query):
        return attend(Attention(bilinear, value), Gaussian(mean, cov), query)

    outputs = np.asarray(jax.jit(jax.vmap(one))(bilinear, value, mean, cov, query))
    constant = np.einsum("nij,nj->ni", value, mean)
    slope = np.einsum("nij,njk,nkl,nl->ni", value, cov, bilinear, query)
    size = np.linalg.norm(constant, axis=1) + np.linalg.norm(slope, axis=1)
    uncentred = slope + constant * np.einsum("nj,njk,nk->n", mean, bilinear, query)[:, None]
    lemma, linear = (np.linalg.norm(outputs - theory, axis=1) / size for theory in (constant + slope, uncentred))
    return lemma, linear


def simulate_rate_errors(ray: QueryRay, length: int, prompts: int, *, key: PRNGKeyArray) -> RateErrors:
    """Return L · squared error of finite prompts around the lemma, with two predictions of its mean."""
    query = ray.queries(RATE_TAU)
    limit, predicted, counted = _predictions(ray, query)

    def one(index):
        prompt = empirical(ray.gaussian, length, key=jr.fold_in(key, index))
        return jnp.sum((attend(ray.params, prompt, query) - limit) ** 2)

    errors = length * np.asarray(map_batched(one, jnp.arange(prompts), size=length))
    return RateErrors(length, errors, float(predicted), float(counted))


@jax.jit
def _predictions(ray: QueryRay, query: Float[Array, " q"]) -> tuple[Array, Array, Array]:
    """Return the output of the infinite prompt, and the two predictions of `RateErrors`."""
    tilt = ray.params.bilinear @ query
    weight = jnp.exp(ray.gaussian.log_mgf(2 * tilt) - 2 * ray.gaussian.log_mgf(tilt))
    tilted = jnp.trace(ray.params.value @ tilted_cov(ray.gaussian, tilt) @ ray.params.value.T)
    predicted = jnp.trace(fluctuation(ray.params, ray.gaussian, query))
    return attend(ray.params, ray.gaussian, query), predicted, weight * tilted
