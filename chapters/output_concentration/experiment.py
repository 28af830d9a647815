"""One head, U = uI and V = I, standard normal queries, and tokens of scale σ.

For Gaussian tokens the error in L²(ν) is known exactly at any length; over σ² it depends on σ through H = uσ alone.
"""

from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from lib.attention import Attention
from lib.measures import Gaussian, GaussianMixture

# Queries asked of each prompt: a query costs a fraction of the tokens it is asked of.
QUERIES = 4
# Queries are drawn from N(0, SPREAD² I) and weighted back to N(0, I): the mean error rests on long ones.
SPREAD = 2**0.5
# Of tokens and queries, where the dimension is not what varies.
DIMENSION = 2


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    scales: PRNGKeyArray
    dimensions: PRNGKeyArray
    laws: PRNGKeyArray
    partitions: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


def head(gain: float, dimension: int = DIMENSION) -> Attention:
    """U = gain · I, V = I."""
    return Attention(gain * np.eye(dimension), np.eye(dimension))


def isotropic(dimension: int, scale: float = 1.0) -> Gaussian:
    """N(0, scale² I)."""
    return Gaussian(np.zeros(dimension), scale**2 * np.eye(dimension))


def clusters(scale: float, *, within: float, dimension: int = DIMENSION) -> GaussianMixture:
    """Independent coordinates of variance σ², of which the share `within` is that of a Gaussian and the rest of a sign.

    From signs (0) over clusters at the corners of a cube to the Gaussian (1): one type, hence compiled once.
    """
    corners = np.stack(np.meshgrid(*[[-1.0, 1.0]] * dimension), axis=-1).reshape(-1, dimension)
    covs = np.broadcast_to(within * scale**2 * np.eye(dimension), (len(corners), dimension, dimension))
    return GaussianMixture(np.zeros(len(corners)), Gaussian(np.sqrt(1 - within) * scale * corners, covs))
