"""The two functions over the plane, and two checks of the quadrature behind them."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.finite_prompt import LARGEST_LOG_LENGTH, LARGEST_TAU, quadrature_error, score_statistics
from lib.partition import Resolution, levels, log_survival, log_tilted

# Where the accuracy of the quadrature is asked for.
PROBES = 24


@dataclass(frozen=True)
class Plane:
    """Participation and score error at the points of a rectangular grid of (τ, ln L)."""

    tau: Float[np.ndarray, " points"]
    log_length: Float[np.ndarray, " points"]
    participation: Float[np.ndarray, " points"]
    score_error: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class WeightSums:
    """What participation and the pairs of weights add up to, with P itself and with its form for long prompts."""

    exact: Float[np.ndarray, " points"]
    long: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class Accuracy:
    """Relative errors at random points: the one that the quadrature reports, and with nodes half as dense."""

    reported: Float[np.ndarray, " probes"]
    coarse: Float[np.ndarray, " probes"]


def evaluate(taus: int, lengths: int) -> Plane:
    """Participation and score error on a rectangular grid of (τ, ln L)."""
    tau, log_length = np.meshgrid(np.linspace(0.0, 12.0, taus), np.linspace(0.0, 80.0, lengths))
    found = score_statistics(tau**2, log_length)
    return Plane(
        tau.ravel(), log_length.ravel(), *(np.ravel(each) for each in (found.participation, found.score_error))
    )


def add_weights(plane: Plane) -> WeightSums:
    """`1 = E (Σp)² = P + L (L - 1) E p_1 p_2`, the pairs by an integral of their own."""
    pairs = np.asarray(_pairs(jnp.asarray(plane.tau), jnp.asarray(plane.log_length)))
    long = np.exp(np.minimum(plane.tau**2 - plane.log_length, 0.0))
    return WeightSums(plane.participation + pairs, long + pairs)


@jax.jit
def _pairs(taus: Float[Array, " n"], log_lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """`L (L - 1) ∫ E[e^u exp(-e^u)]² φ^{L-2} dy`: the weight that pairs of different tokens carry."""

    def one(point):
        tau, log_length = jnp.maximum(point[0], 1e-6), point[1]
        y, spacing = levels(tau, log_length)
        rest = (jnp.expm1(log_length) - 1) * log_survival(y, tau)
        pairs = spacing * jnp.sum(jnp.exp(2 * log_length + 2 * log_tilted(1, y, tau) + rest))
        return -jnp.expm1(-log_length) * pairs

    return jax.lax.map(one, (taus, log_lengths))


def probe_quadrature(*, key: PRNGKeyArray) -> Accuracy:
    """The error the quadrature reports, at random points of the whole guaranteed domain."""
    tau_key, length_key = jr.split(key)
    taus = jr.uniform(tau_key, (PROBES,), minval=0.1, maxval=LARGEST_TAU)
    log_lengths = jr.uniform(length_key, (PROBES,), minval=0.1, maxval=LARGEST_LOG_LENGTH)
    reported, coarse = jax.jit(quadrature_error)(taus, log_lengths), _coarse_error(taus, log_lengths)
    return Accuracy(np.asarray(reported), np.asarray(coarse))


@jax.jit
def _coarse_error(taus: Float[Array, " n"], log_lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """Relative error of the participation's normalisation with half the nodes."""
    coarse = Resolution(levels=96, step=0.5)

    def one(point):
        tau, log_length = point
        y, spacing = levels(tau, log_length, resolution=coarse)
        rest = jnp.expm1(log_length) * log_survival(y, tau, resolution=coarse)
        terms = jnp.exp(log_length + log_tilted(1, y, tau, resolution=coarse) + rest)
        return jnp.abs(spacing * jnp.sum(terms) - 1)

    return jax.lax.map(one, (taus, log_lengths))
