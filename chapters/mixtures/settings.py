"""The mixtures of this chapter: those of [GBB26, Table 1] and [GBB26, Figure 2], and others of the same kinds."""

import jax
import numpy as np

from chapters.mixtures.style import PUBLISHED_MEANS, TOKEN_STD
from lib.measures import Gaussian, GaussianMixture

# [GBB26, Table 1]: the probability of the label +1 in C1, and the dimension of C2. Covariances are identities.
PUBLISHED_WEIGHT, OPPOSITE_DIMENSION = 0.6, 20
# [GBB26, Figure 2]: means (3, 0) and (0, 3). The weights are not given.
DIMENSION, RADIUS = 2, 3.0


def mixture(means, cov, log_weights=(0.0, 0.0)) -> GaussianMixture:
    """Return two components with these means, shape (2, d), and one covariance, shape (d, d) or, if isotropic, ()."""
    means, cov = means if isinstance(means, jax.Array) else np.asarray(means, float), np.asarray(cov, float)
    cov = cov if cov.ndim else cov * np.eye(means.shape[-1])
    return GaussianMixture(log_weights, Gaussian(means, np.broadcast_to(cov, (2, *cov.shape))))


def classes(means, cov, weight: float = PUBLISHED_WEIGHT) -> GaussianMixture:
    """Return two classes of these means: component 0 has the label +1 and this weight, component 1 the label -1."""
    return mixture(means, cov, np.log([weight, 1 - weight]))


def published_classes() -> GaussianMixture:
    """Return the mixture C1 of [GBB26, Table 1]: two dimensions, unequal weights, means that are not opposite."""
    return classes(PUBLISHED_MEANS, 1.0)


def opposite_classes() -> GaussianMixture:
    """Return the mixture C2 of [GBB26, Table 1]: 20 dimensions, equal weights, opposite means."""
    first = np.eye(OPPOSITE_DIMENSION)[0]
    return classes([first, -first], 1.0, 0.5)


def published_tokens() -> GaussianMixture:
    """Return the mixture of [GBB26, Figure 2] without noise, with equal weights."""
    return mixture(RADIUS * np.eye(DIMENSION), TOKEN_STD**2)


def opposite_tokens() -> GaussianMixture:
    """Return a mixture with opposite means of the same norm."""
    return mixture(RADIUS * np.array([[1.0, 0.0], [-1.0, 0.0]]), TOKEN_STD**2)
