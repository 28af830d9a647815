"""The mixtures of this chapter: the published one of [GBB26, Figure 2], and random tasks of the same kind."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from chapters.mixture_denoising.denoisers import add_noise
from chapters.mixture_denoising.style import TOKEN_STD
from lib.attention import Attention
from lib.measures import Gaussian, GaussianMixture

DIMENSION = 2
# [GBB26, Figure 2]: means (3, 0) and (0, 3), and the standard deviation of noise. The weights are not given.
RADIUS, PUBLISHED_NOISE_STD = 3.0, 2.0


def mixture(means, log_weights=(0.0, 0.0), token_std: float = TOKEN_STD) -> GaussianMixture:
    """Return the mixture of two components with these means, shape (2, d), and the covariance `token_std² I`."""
    means = jnp.asarray(means)
    covs = jnp.broadcast_to(token_std**2 * jnp.eye(means.shape[-1]), (2, means.shape[-1], means.shape[-1]))
    return GaussianMixture(jnp.asarray(log_weights), Gaussian(means, covs))


def published_mixture() -> GaussianMixture:
    """Return the mixture of [GBB26, Figure 2] with equal weights."""
    return mixture(RADIUS * np.eye(DIMENSION))


def opposite_mixture() -> GaussianMixture:
    """Return a mixture with opposite means of the same norm."""
    return mixture(RADIUS * np.array([[1.0, 0.0], [-1.0, 0.0]]))


def head_outputs(head: Attention, noisy: GaussianMixture, queries: Float[Array, "n d"]) -> Float[Array, "n d"]:
    r"""Return the outputs of a head on the infinite prompt for many queries: `attend`, as a few products of matrices.

    `V (S U z + Σ_k α_k(z) m_k)` [GBB26, Prop. 2.1], for components of one covariance S. Searches and trainings take
    thousands of steps, and products of small matrices, one for each query, are slow.
    """
    means, tilts = noisy.components.mean, queries @ head.bilinear.T
    weights = jax.nn.softmax(tilts @ means.T + noisy.log_weights, axis=1)
    return (tilts @ noisy.components.cov[0] + weights @ means) @ head.value.T


def denoised(law: GaussianMixture, noise_std: float, queries: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Return the posterior means for many queries, `bayes_denoiser` as a few products of matrices."""
    noisy, means = add_noise(law, noise_std), law.components.mean
    inverse = jnp.linalg.inv(noisy.components.cov[0])
    offsets = noisy.log_weights - 0.5 * jnp.sum((means @ inverse) * means, axis=1)
    posterior = jax.nn.softmax(queries @ inverse @ means.T + offsets, axis=1)
    return queries - noise_std**2 * (queries - posterior @ means) @ inverse
