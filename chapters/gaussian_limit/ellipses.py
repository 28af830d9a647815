"""Elliptical tokens, of three laws with the same covariance: equally far in every direction, and asked along a ray."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import two_clusters
from lib.attention import attend
from lib.batching import map_batched
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, GaussianMixture, Measure, Pushforward, empirical

# What the scale S of tokens √S Γ^{1/2} g is, one half of the time each: of mean 1, so that the covariance is Γ.
SCALES = (0.4, 1.6)
# Finite prompts are compared with the limit up to this query size: beyond, too few of their tokens matter.
COMPARED = 1.0
CLUSTERS = "two clusters"


class Sphere(Measure):
    """Uniform on the sphere of radius √3 in R³, which has covariance I: `Λ(ξ) = log(sinh r / r)`, r = √3 |ξ|."""

    def log_mgf(self, tilt):
        """By the mean of `e^{r x}` over x uniform on [-1, 1]; not to be differentiated at zero."""
        radius = jnp.sqrt(3.0 * tilt @ tilt)
        return radius + jnp.log(-jnp.expm1(-2 * radius)) - jnp.log(2 * radius)

    def sample(self, n, *, key):
        """Directions of standard normals."""
        normals = jr.normal(key, (n, 3))
        return jnp.sqrt(3.0) * normals / jnp.linalg.norm(normals, axis=1, keepdims=True)


def laws(gaussian: Gaussian) -> dict[str, Measure]:
    """Three elliptical laws with the mean and the covariance of a regular Gaussian in three dimensions."""
    means = jnp.broadcast_to(gaussian.mean, (2, 3))
    scaled = Gaussian(means, jnp.asarray(SCALES)[:, None, None] * gaussian.cov)
    return {
        "two scales": GaussianMixture(jnp.zeros(2), scaled),
        "Gaussian": gaussian,
        "ellipsoid": Pushforward(Sphere(), jnp.linalg.cholesky(gaussian.cov), gaussian.mean),
    }


def factors(tau: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
    """By law: `ψ(τ²) = 2λ'(τ²)`, by which the answer is longer than the Gaussian's, in closed form."""
    scales = np.asarray(SCALES)[:, None]
    weights = np.exp(scales * tau**2 / 2)
    radius = np.sqrt(3.0) * tau
    return {
        "two scales": (scales * weights).sum(axis=0) / weights.sum(axis=0),
        "Gaussian": np.ones_like(tau),
        "ellipsoid": 3 * (1 / np.tanh(radius) - 1 / radius) / radius,
    }


@dataclass(frozen=True)
class EllipticalAnswers:
    """Of one law: answers of the infinite prompt and of finite ones, less Vm, along the line and across it."""

    exact: Float[np.ndarray, "taus e"]
    along: Float[np.ndarray, "prompts taus"]
    line: Float[np.ndarray, " e"]


def simulate(
    ray: QueryRay, taus: Float[np.ndarray, " taus"], length: int, prompts: int, *, key: PRNGKeyArray
) -> dict[str, EllipticalAnswers]:
    """`attend` on each law, and on so many finite prompts of it, along the ray; `V m` is taken off."""
    return {
        name: _answers(ray, law, taus, length, prompts, key=jr.fold_in(key, index))
        for index, (name, law) in enumerate(laws(ray.gaussian).items())
    }


def off_the_line(ray: QueryRay, taus: Float[np.ndarray, " taus"]) -> dict[str, float]:
    """By law: the largest part of an infinite prompt's answer that is not along `VΓUz`, relative to the answer.

    Of the elliptical laws, and of one with the same mean and covariance that is not elliptical.
    """
    tokens = {**laws(ray.gaussian), CLUSTERS: two_clusters(ray.gaussian)}
    return {name: _off_the_line(_infinite(ray, law, taus), np.asarray(ray.line)) for name, law in tokens.items()}


def _off_the_line(answers: Float[np.ndarray, "taus e"], line: Float[np.ndarray, " e"]) -> float:
    rest = answers - np.outer(answers @ line, line) / (line @ line)
    return float(np.max(np.linalg.norm(rest, axis=1) / np.linalg.norm(answers, axis=1)))


def query_sizes() -> Float[np.ndarray, " taus"]:
    """From nearly 0 to 3."""
    return np.linspace(0.0, 3.0, 31)[1:]


def _infinite(ray: QueryRay, law: Measure, taus: Float[np.ndarray, " taus"]) -> Float[np.ndarray, "taus e"]:
    outputs = jax.jit(jax.vmap(partial(attend, ray.params, law)))(ray.queries(taus))
    return np.asarray(outputs - ray.params.value @ ray.gaussian.mean)


def _answers(
    ray: QueryRay, law: Measure, taus: Float[np.ndarray, " taus"], length: int, prompts: int, *, key: PRNGKeyArray
) -> EllipticalAnswers:
    def one(index):
        prompt = empirical(law, length, key=jr.fold_in(key, index))
        return jax.lax.map(lambda query: ray.read(attend(ray.params, prompt, query)), ray.queries(taus))

    along = map_batched(one, jnp.arange(prompts), size=3 * length)
    return EllipticalAnswers(_infinite(ray, law, taus), np.asarray(along), np.asarray(ray.line))
