"""Outputs of elliptical tokens: three distributions with the same mean and covariance, and queries along a ray."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import (
    TOKENS_TOGETHER,
    infinite_outputs,
    scores_and_coordinates,
    softmax_means,
    two_clusters,
)
from lib.batching import in_batches
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, GaussianMixture, Measure, Pushforward
from lib.random import normal

# Values of the scale S of tokens √S Γ^{1/2} g, with equal chance; their mean is 1, so that the covariance is Γ.
SCALES = (0.4, 1.6)
# Finite prompts are compared with the limit up to this query size: beyond, too few of their tokens matter.
COMPARED = 1.0
CLUSTERS = "two clusters"


class Sphere(Measure):
    """Uniform distribution on the sphere of radius √3 in R³, of covariance I: `Λ(ξ) = log(sinh r / r)`, r = √3 |ξ|."""

    def log_mgf(self, tilt):
        """Return the logarithm of the mean of `e^{r x}` over x uniform on [-1, 1]; it has no gradient at zero."""
        radius = jnp.sqrt(3.0 * tilt @ tilt)
        return radius + jnp.log(-jnp.expm1(-2 * radius)) - jnp.log(2 * radius)

    def sample(self, n, *, key):
        """Return scaled directions of standard normal vectors."""
        normals = normal(key, (n, 3))
        return np.sqrt(3.0) * normals / (normals**2).sum(axis=1, keepdims=True) ** 0.5


def elliptical_distributions(gaussian: Gaussian) -> dict[str, Measure]:
    """Return three elliptical distributions with the mean and the invertible covariance of a Gaussian in R³."""
    mean, cov = np.asarray(gaussian.mean), np.asarray(gaussian.cov)
    scaled = Gaussian(np.stack([mean] * 2), np.asarray(SCALES)[:, None, None] * cov)
    return {
        "two scales": GaussianMixture(np.zeros(2), scaled),
        "Gaussian": gaussian,
        "ellipsoid": Pushforward(Sphere(), np.linalg.cholesky(cov), mean),
    }


def length_factors(tau: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
    """Return, for each distribution, the factor ψ(τ²) = 2λ'(τ²) of the length of the output, in closed form."""
    scales = np.asarray(SCALES)[:, None]
    weights = np.exp(scales * tau**2 / 2)
    radius = np.sqrt(3.0) * tau
    return {
        "two scales": (scales * weights).sum(axis=0) / weights.sum(axis=0),
        "Gaussian": np.ones_like(tau),
        "ellipsoid": 3 * (1 / np.tanh(radius) - 1 / radius) / radius,
    }


@dataclass(frozen=True)
class EllipticalOutputs:
    """Outputs for one distribution of tokens.

    Attributes:
      exact: outputs of the infinite prompt, minus Vm.
      along: components of the outputs of finite prompts along the line VΓUz.
      line: the vector VΓUz at query size 1.
    """

    exact: Float[np.ndarray, "taus e"]
    along: Float[np.ndarray, "prompts taus"]
    line: Float[np.ndarray, " e"]

    @property
    def off_the_line(self) -> float:
        """Return the largest part of an output of the infinite prompt across the line, relative to the output."""
        rest = self.exact - np.outer(self.exact @ self.line, self.line) / (self.line @ self.line)
        return float(np.max(np.linalg.norm(rest, axis=1) / np.linalg.norm(self.exact, axis=1)))


def query_sizes() -> Float[np.ndarray, " taus"]:
    """Return query sizes from 0.1 to 3."""
    return np.linspace(0.0, 3.0, 31)[1:]


def simulate_outputs(
    ray: QueryRay, taus: Float[np.ndarray, " taus"], length: int, prompts: int, *, key: PRNGKeyArray
) -> dict[str, EllipticalOutputs]:
    """Return outputs along the ray, of the infinite prompt and of finite prompts, for each distribution.

    There are three elliptical distributions and one with the same mean and covariance that is not elliptical.
    """
    queries, mean, outputs = ray.queries(taus), ray.gaussian.mean, {}
    batch = max(1, TOKENS_TOGETHER // length)
    distributions = {**elliptical_distributions(ray.gaussian), CLUSTERS: two_clusters(ray.gaussian)}
    for index, (name, distribution) in enumerate(distributions.items()):
        exact = infinite_outputs(ray.params, distribution, queries) - ray.params.value @ mean
        drawn = jax.tree.map(np.asarray, distribution).sample(prompts * length, key=jr.fold_in(key, index))
        read = scores_and_coordinates(ray, np.asarray(drawn).reshape(prompts, length, 3) - mean)
        along = in_batches(lambda *some: softmax_means(*some, taus)[0], *read, batch=batch)
        outputs[name] = EllipticalOutputs(exact, along, ray.line)
    return outputs
