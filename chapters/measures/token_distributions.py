"""Two distributions of tokens in the plane, and the tilted distribution `e^{⟨ξ, z⟩} μ(dz)`, normalised."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.measures import Gaussian, GaussianMixture, tilted_mean


def token_distributions() -> dict[str, GaussianMixture]:
    """Return a Gaussian, written as a mixture with one component, and a mixture of three Gaussians."""
    gaussian = Gaussian([[-0.5, -0.4]], [[[0.9, 0.45], [0.45, 0.7]]])
    three = Gaussian(
        [[-1.3, -0.9], [0.3, 1.7], [1.7, -0.9]],
        [[[0.30, 0.10], [0.10, 0.25]], [[0.40, -0.15], [-0.15, 0.20]], [[0.15, 0.05], [0.05, 0.35]]],
    )
    return {
        "Gaussian": GaussianMixture([0.0], gaussian),
        "mixture": GaussianMixture(np.log([0.6, 0.25, 0.15]), three),
    }


def simulate_tokens(
    distributions: Mapping[str, GaussianMixture], n: int, *, key: PRNGKeyArray
) -> dict[str, Float[np.ndarray, "n 2"]]:
    """Return `n` tokens from each distribution."""
    return {
        name: np.asarray(_draw(distribution, n, key=jr.fold_in(key, index)))
        for index, (name, distribution) in enumerate(distributions.items())
    }


@eqx.filter_jit
def _draw(distribution: GaussianMixture, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
    """Return `n` tokens; this is compiled once per type of distribution."""
    return distribution.sample(n, key=key)


@jax.jit
def log_mgf_and_mean(
    distribution: GaussianMixture, tilt: Float[Array, " d"]
) -> tuple[Float[Array, ""], Float[Array, " d"]]:
    """Return Λ and ∇Λ at a tilt."""
    return distribution.log_mgf(tilt), tilted_mean(distribution, tilt)


def tilted_distribution(
    distribution: GaussianMixture, tilt: Float[np.ndarray, " d"], *, move_weights: bool = True
) -> GaussianMixture:
    """Return the tilted distribution in closed form: means `m_k + Γ_k ξ`, the same covariances, new weights.

    `move_weights=False` keeps the weights of the components, which is the mistake that a claim must reject.
    """
    means, covs = np.asarray(distribution.components.mean), np.asarray(distribution.components.cov)
    log_mgfs = means @ tilt + 0.5 * tilt @ covs @ tilt
    return GaussianMixture(
        np.asarray(distribution.log_weights) + move_weights * log_mgfs, Gaussian(means + covs @ tilt, covs)
    )


def log_density(distribution: GaussianMixture, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Return the log-density of a mixture with invertible covariances, in NumPy."""
    log_weights = np.asarray(distribution.log_weights)
    means, covs = np.asarray(distribution.components.mean), np.asarray(distribution.components.cov)
    offsets = points[:, None] - means
    squares = np.einsum("nki,kij,nkj->nk", offsets, np.linalg.inv(covs), offsets)
    logs = log_weights - np.logaddexp.reduce(log_weights) - 0.5 * (squares + np.linalg.slogdet(2 * np.pi * covs)[1])
    return np.logaddexp.reduce(logs, axis=1)


def log_tilted_density(
    distribution: GaussianMixture, tilt: Float[np.ndarray, " d"], points: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, " n"]:
    """Return the log-density of the tilted distribution by definition: `log μ(z) + ⟨ξ, z⟩ - Λ(ξ)`."""
    return log_density(distribution, points) + points @ tilt - float(log_mgf_and_mean(distribution, tilt)[0])
