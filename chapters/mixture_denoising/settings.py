"""The mixtures of this chapter: the published one of [GBB26, Figure 2], and random tasks of the same kind."""

import jax.numpy as jnp
import numpy as np

from lib.measures import Gaussian, GaussianMixture

DIMENSION = 2
# [GBB26, Figure 2]: means (3, 0) and (0, 3), standard deviations of tokens and of noise. The weights are not given.
RADIUS, TOKEN_STD, PUBLISHED_NOISE_STD = 3.0, 1.0, 2.0


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
