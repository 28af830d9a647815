"""Heads A = uI with gain b on in-context regression with Σ = I: what a finite prompt adds to the risk, by its parts."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from chapters.laboratory.grids import Values
from lib.batching import in_batches
from lib.icl import Blocks, LinearRegression, block_risk, score_table
from lib.icl.averages import QueryAverage, radial
from lib.icl.blocks import block_head

# Covariates have room for this many coordinates, of which a task uses the first: one compilation serves all dimensions.
ROOM = 10
# Lengths of a query, on a ray: more rays would give the same. Roots of covariances have their largest axis last.
RADII, RAY = 64, np.eye(ROOM)[-1]


def parts(dimension: Values, log_length: Values, tilt: Values, noise: Values) -> Mapping[str, Values]:
    """At all nodes of a grid: logarithms of the two parts, and of the best linear head's risk less ½s²."""
    shrink, spread = np.empty(dimension.shape), np.empty(dimension.shape)
    for place in range(dimension.shape[1]):
        here = tuple(axis[:, place].ravel() for axis in (dimension, noise, tilt))
        found = _parts(*here, _queries(here[0]), score_table(float(log_length[0, place, 0, 0])))
        shrink[:, place], spread[:, place] = (np.asarray(part).reshape(shrink[:, place].shape) for part in found)
    rows = np.s_[:, :, :1]  # whatever the tilt
    linear = linear_excess(*(axis[rows].ravel() for axis in (dimension, noise, log_length))).reshape(noise[rows].shape)
    return {
        "log_shrink": np.log(shrink),
        "log_spread": np.log(spread),
        "log_linear": np.broadcast_to(np.log(linear), shrink.shape),
    }


def excess(dimension: Values, noise: Values, log_length: float, tilt: Values, gain: Values) -> Values:
    """The risk of heads at one length less ½s², which nobody is spared: from the library."""
    heads = (dimension, noise, tilt, gain, _queries(dimension))
    return np.asarray(_excess(heads, score_table(float(log_length))))


def linear_excess(dimension: Values, noise: Values, log_length: Values) -> Values:
    """The same of the best linear head."""
    return in_batches(_linear_excess, dimension, noise, np.exp(log_length))


def _task(dimension: Float[Array, ""], noise: Float[Array, ""]) -> LinearRegression:
    return LinearRegression(jnp.diag(jnp.arange(ROOM) < dimension).astype(float), noise_std=jnp.sqrt(noise))


def _head(tilt: Float[Array, ""], gain: Float[Array, ""]) -> Blocks:
    return Blocks(tilt * jnp.eye(ROOM), gain)


def _queries(dimension: Values) -> QueryAverage:
    """One average a task, stacked."""
    radii, weights = zip(*(radial(int(d), RADII) for d in dimension), strict=True)
    return jax.vmap(QueryAverage)(np.stack(radii)[..., None] * RAY, np.stack(weights))


@jax.jit
def _parts(dimension, noise, tilt, queries, scores):
    """Twice what the length adds to the risk is `bu(1 - bu) shrink + (bu)² spread`: read off at bu = ½ and 1."""

    def of_one(dimension, noise, tilt, queries):
        task = _task(dimension, noise)

        def added(share):
            head = _head(tilt, share / tilt)
            return 2 * (block_risk(task, head, scores, queries) - task.infinite_risk(block_head(head)))

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
