"""Heads A = uI with gain b on in-context regression with Σ = I: the parts that a finite prompt adds to the risk."""

from collections.abc import Mapping

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
# Queries are on one ray; more rays give the same average. The ray is the last axis, because roots of covariances have
# their largest axis last.
RAY = np.eye(ROOM)[-1]


def radial(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return n radii up to √d + 10 and weights of sum 1, for the length of a standard normal vector of R^d."""
    unit, width = np.polynomial.legendre.leggauss(n)
    radius = (d**0.5 + 10) * (unit + 1) / 2
    return radius, softmax(np.log(width) + (d - 1) * np.log(radius) - radius**2 / 2)


# Lengths of queries and their weights, for each dimension from 1 to `ROOM`.
RADIAL = np.stack([radial(d, 64) for d in range(1, ROOM + 1)], axis=1)


def parts(dimension: Values, log_length: Values, tilt: Values, noise: Values) -> Mapping[str, Values]:
    """Return, at all nodes, the logarithms of the two parts and of the excess risk of the best linear head.

    Twice the difference between finite and infinite risk is `bu(1 - bu) shrink + (bu)² spread`, so that the parts
    follow from the risks at bu = ½ and bu = 1.
    """
    half, spread = (
        2 * excess(dimension, noise, log_length, tilt, share / tilt) - dimension * (1 - share) ** 2
        for share in (0.5, 1.0)
    )
    return {
        "log_shrink": np.log(4 * half - spread),
        "log_spread": np.log(spread),
        "log_linear": np.log(linear_excess(dimension, noise, log_length)),
    }


def excess(dimension: Values, noise: Values, log_length: Values, tilt: Values, gain: Values) -> Values:
    """Return the excess risks of heads by the library: their risks minus the risk ½s² of the noise of the label."""
    lengths, places = np.unique(log_length, return_inverse=True)
    tables = jax.tree.map(lambda *leaves: np.stack(leaves), *ScoreTable.at_each(lengths))

    def risks(place, dimension, *heads):
        scores = jax.tree.map(lambda leaf: leaf[place], tables)
        return _excess((dimension, *heads), tuple(RADIAL[:, dimension.astype(int) - 1]), scores)

    columns = (places.ravel(), *map(np.ravel, (dimension, noise, tilt, gain)))
    return in_batches(risks, *columns).reshape(dimension.shape)


def linear_excess(dimension: Values, noise: Values, log_length: Values) -> Values:
    """Return the excess risks of the best linear heads by the library."""
    columns = map(np.ravel, (dimension, noise, np.exp(log_length)))
    return in_batches(_linear_excess, *columns).reshape(dimension.shape)


def _task(dimension: Float[Array, ""], noise: Float[Array, ""]) -> LinearRegression:
    return LinearRegression(jnp.diag(jnp.arange(ROOM) < dimension).astype(float), noise_std=jnp.sqrt(noise))


@jax.jit
@jax.vmap
def _excess(setting, radial_rule, scores):
    (dimension, noise, tilt, gain), (radius, weight) = setting, radial_rule
    head, queries = Blocks(tilt * jnp.eye(ROOM), gain), QueryAverage(radius[:, None] * RAY, weight)
    return block_risk(_task(dimension, noise), head, scores, queries) - noise / 2


@jax.jit
@jax.vmap
def _linear_excess(dimension, noise, length):
    return _task(dimension, noise).linear_attention_risk(length) - noise / 2
