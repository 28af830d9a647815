"""Heads A = uI with gain b on in-context regression with Σ = I: the parts that a finite prompt adds to the risk."""

from collections.abc import Mapping
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from chapters.laboratory.grids import Values
from lib.batching import in_batches
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk

# Covariates have this many coordinates and a task uses the first ones, so that one compilation serves all dimensions.
ROOM = 10
# Number of query lengths, on one ray; more rays give the same average. The ray is the last axis, because roots of
# covariances have their largest axis last.
RADII, RAY = 64, np.eye(ROOM)[-1]


def parts(dimension: Values, log_length: Values, tilt: Values, noise: Values) -> Mapping[str, Values]:
    """Return, at all nodes, the logarithms of the two parts and of the excess risk of the best linear head."""
    shrink, spread = np.empty(dimension.shape), np.empty(dimension.shape)
    for place, scores in enumerate(ScoreTable.at_each(log_length[0, :, 0, 0])):
        heads = tuple(axis[:, place].ravel() for axis in (dimension, noise, tilt))
        both_parts = _parts(*heads, _queries(heads[0]), scores)
        shrink[:, place], spread[:, place] = (np.asarray(part).reshape(shrink[:, place].shape) for part in both_parts)
    rows = np.s_[:, :, :1]  # the linear head does not depend on the tilt
    linear = linear_excess(*(axis[rows].ravel() for axis in (dimension, noise, log_length))).reshape(noise[rows].shape)
    return {
        "log_shrink": np.log(shrink),
        "log_spread": np.log(spread),
        "log_linear": np.broadcast_to(np.log(linear), shrink.shape),
    }


def excess(dimension: Values, noise: Values, log_length: float, tilt: Values, gain: Values) -> Values:
    """Return the excess risks of heads at one length by the library: their risks minus ½s², the noise of the label."""
    heads = (dimension, noise, tilt, gain, _queries(dimension))
    return np.asarray(_excess(heads, ScoreTable.at(float(log_length))))


def linear_excess(dimension: Values, noise: Values, log_length: Values) -> Values:
    """Return the excess risks of the best linear heads by the library."""
    return in_batches(_linear_excess, dimension, noise, np.exp(log_length))


def _task(dimension: Float[Array, ""], noise: Float[Array, ""]) -> LinearRegression:
    return LinearRegression(jnp.diag(jnp.arange(ROOM) < dimension).astype(float), noise_std=jnp.sqrt(noise))


def _head(tilt: Float[Array, ""], gain: Float[Array, ""]) -> Blocks:
    return Blocks(tilt * jnp.eye(ROOM), gain)


def _queries(dimension: Values) -> QueryAverage:
    """Return the stacked averages over queries, one per task."""
    radii, weights = zip(*(radial(int(d), RADII) for d in dimension), strict=True)
    return jax.vmap(QueryAverage)(np.stack(radii)[..., None] * RAY, np.stack(weights))


@jax.jit
def _parts(dimension, noise, tilt, queries, scores):
    """Return shrink and spread, from the risks at bu = ½ and bu = 1.

    Twice the difference between finite and infinite risk is `bu(1 - bu) shrink + (bu)² spread`.
    """

    def of_one(dimension, noise, tilt, queries):
        task = _task(dimension, noise)

        def added(share):
            head = _head(tilt, share / tilt)
            return 2 * (block_risk(task, head, scores, queries) - task.infinite_risk(Blocks.head(head)))

        half, whole = jax.vmap(added)(jnp.asarray([0.5, 1.0]))
        return 4 * half - whole, whole

    return jax.vmap(of_one)(dimension, noise, tilt, queries)


@jax.jit
def _excess(heads, scores):
    def of_one(dimension, noise, tilt, gain, queries):
        return block_risk(_task(dimension, noise), _head(tilt, gain), scores, queries) - noise / 2

    return jax.vmap(of_one)(*heads)


@jax.jit
def _linear_excess(dimension, noise, length):
    def of_one(dimension, noise, length):
        return _task(dimension, noise).linear_attention_risk(length) - noise / 2

    return jax.vmap(of_one)(dimension, noise, length)


@lru_cache
def radial(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return n radii up to √d + 10 and weights of sum 1, for the length of a standard normal vector of R^d."""
    unit, width = np.polynomial.legendre.leggauss(n)
    radius = (d**0.5 + 10) * (unit + 1) / 2
    return radius, softmax(np.log(width) + (d - 1) * np.log(radius) - radius**2 / 2)
