"""The experiment of this chapter: the head U = uI, V = I, standard normal queries, and tokens of scale σ.

For Gaussian tokens the error of the output in L²(ν) is known exactly at every length; divided by σ², it depends on σ
only through H = uσ.
"""

import numpy as np

from lib.attention import Attention
from lib.measures import Gaussian, GaussianMixture

# Queries per prompt; one query is cheaper than the tokens of a prompt.
QUERIES = 4
# Queries are drawn from N(0, SPREAD² I) and weighted back to N(0, I): long ones contribute most of the mean error.
SPREAD = 2**0.5
# Dimension of tokens, queries and outputs in the figures that do not compare dimensions.
DIMENSION = 2


def head(gain: float, dimension: int = DIMENSION) -> Attention:
    """Return the head U = gain · I, V = I."""
    return Attention(gain * np.eye(dimension), np.eye(dimension))


def isotropic(dimension: int, scale: float = 1.0) -> Gaussian:
    """Return N(0, scale² I)."""
    return Gaussian(np.zeros(dimension), scale**2 * np.eye(dimension))


def clusters(scale: float, *, within: float, dimension: int = DIMENSION) -> GaussianMixture:
    """Return tokens with independent coordinates of variance σ², each a Gaussian plus a sign.

    The fraction `within` of the variance is Gaussian: 0 gives signs, 1 a Gaussian, other values clusters at the corners
    of a cube. All have the same type, so that code compiles once.
    """
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * dimension), axis=-1).reshape(-1, dimension)
    covs = np.broadcast_to(within * scale**2 * np.eye(dimension), (len(corners), dimension, dimension))
    return GaussianMixture(np.zeros(len(corners)), Gaussian(np.sqrt(1 - within) * scale * corners, covs))
