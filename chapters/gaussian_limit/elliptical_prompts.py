"""Elliptical tokens, of three laws with the same covariance: equally far in every direction, and asked along a ray."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import two_clusters
from lib.attention import attend
from lib.finite_prompt import QueryRay
from lib.measures import Empirical, Gaussian, GaussianMixture, Measure, Pushforward

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
    """Of one law: answers of the infinite prompt, less Vm, and of finite prompts, read along the line `VΓUz`."""

    exact: Float[np.ndarray, "taus e"]
    along: Float[np.ndarray, "prompts taus"]
    line: Float[np.ndarray, " e"]

    @property
    def off_the_line(self) -> float:
        """The largest part of an infinite prompt's answer that is not along the line, relative to the answer."""
        rest = self.exact - np.outer(self.exact @ self.line, self.line) / (self.line @ self.line)
        return float(np.max(np.linalg.norm(rest, axis=1) / np.linalg.norm(self.exact, axis=1)))


def query_sizes() -> Float[np.ndarray, " taus"]:
    """From nearly 0 to 3."""
    return np.linspace(0.0, 3.0, 31)[1:]


def simulate(
    ray: QueryRay, taus: Float[np.ndarray, " taus"], length: int, prompts: int, *, key: PRNGKeyArray
) -> dict[str, EllipticalAnswers]:
    """`attend` along the ray, on each law and on so many finite prompts of it.

    On the elliptical laws, and on one of the same mean and covariance that is not elliptical.
    """
    queries, line = ray.queries(taus), np.asarray(ray.line)
    answers = {}
    for index, (name, law) in enumerate({**laws(ray.gaussian), CLUSTERS: two_clusters(ray.gaussian)}.items()):
        exact = jax.jit(jax.vmap(partial(attend, ray.params, law)))(queries)
        tokens = law.sample(prompts * length, key=jr.fold_in(key, index)).reshape(prompts, length, 3)
        along = _along(ray, tokens, queries)
        exact_less = np.asarray(exact - ray.params.value @ ray.gaussian.mean)
        answers[name] = EllipticalAnswers(exact_less, np.asarray(along), line)
    return answers


@jax.jit
def _along(
    ray: QueryRay, prompts: Float[Array, "prompts length 3"], queries: Float[Array, "taus 3"]
) -> Float[Array, "prompts taus"]:
    """Compiled once for all laws."""

    def one(points):
        return jax.lax.map(lambda query: ray.read(attend(ray.params, Empirical(points), query)), queries)

    return jax.lax.map(one, prompts)
