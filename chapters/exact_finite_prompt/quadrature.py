"""Participation and score error over the plane of (τ, ln L), and two checks of their quadrature."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.finite_prompt import LARGEST_TAU, quadrature_error, score_statistics
from lib.partition import Resolution, log_survival, log_tilted

# Number of random points at which the accuracy of the quadrature is measured, and the largest ln L of its domain.
PROBES, LARGEST_LOG_LENGTH = 24, 330.0


@dataclass(frozen=True)
class Plane:
    """Participation and score error at the points of a rectangular grid of (τ, ln L)."""

    tau: Float[np.ndarray, " points"]
    log_length: Float[np.ndarray, " points"]
    participation: Float[np.ndarray, " points"]
    score_error: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class WeightSums:
    """Sums of participation and the pairs of weights, with the exact P and with its form for long prompts."""

    exact: Float[np.ndarray, " points"]
    long: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class Accuracy:
    """Relative errors at random points: the estimate of the quadrature, and the error with half as many nodes."""

    reported: Float[np.ndarray, " probes"]
    coarse: Float[np.ndarray, " probes"]


def solve_plane(taus: int, lengths: int) -> Plane:
    """Return participation and score error on a rectangular grid of (τ, ln L)."""
    tau, log_length = np.meshgrid(np.linspace(0.0, 12.0, taus), np.linspace(0.0, 80.0, lengths))
    statistics = score_statistics(tau**2, log_length)
    return Plane(tau.ravel(), log_length.ravel(), np.ravel(statistics.participation), np.ravel(statistics.score_error))


def solve_weight_sums(plane: Plane) -> WeightSums:
    """Return `P + L (L - 1) E p_1 p_2`, which equals `E (Σp)² = 1`; a separate integral gives the pairs."""
    pairs = np.asarray(_pairs(jnp.asarray(plane.tau), jnp.asarray(plane.log_length)))
    long = np.exp(np.minimum(plane.tau**2 - plane.log_length, 0.0))
    return WeightSums(plane.participation + pairs, long + pairs)


@jax.jit
def _pairs(taus: Float[Array, " n"], log_lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return `L (L - 1) ∫ E[e^u exp(-e^u)]² φ^{L-2} dy`, the mean product of weights over pairs of tokens."""

    def one(point):
        tau, log_length = jnp.maximum(point[0], 1e-6), point[1]
        y, spacing = Resolution().levels(tau, log_length)
        rest = (jnp.expm1(log_length) - 1) * log_survival(y, tau)
        pairs = spacing * jnp.sum(jnp.exp(2 * log_length + 2 * log_tilted(1, y, tau) + rest))
        return -jnp.expm1(-log_length) * pairs

    return jax.lax.map(one, (taus, log_lengths))


def solve_quadrature_accuracy(*, key: PRNGKeyArray) -> Accuracy:
    """Return the error estimate of the quadrature at random points of the whole guaranteed domain."""
    tau_key, length_key = jr.split(key)
    taus = jr.uniform(tau_key, (PROBES,), minval=0.1, maxval=LARGEST_TAU)
    log_lengths = jr.uniform(length_key, (PROBES,), minval=0.1, maxval=LARGEST_LOG_LENGTH)
    reported, coarse = jax.jit(quadrature_error)(taus, log_lengths), _coarse_error(taus, log_lengths)
    return Accuracy(np.asarray(reported), np.asarray(coarse))


@jax.jit
def _coarse_error(taus: Float[Array, " n"], log_lengths: Float[Array, " n"]) -> Float[Array, " n"]:
    """Return the relative error of the sum of the weights with half as many nodes."""
    coarse = Resolution(count=96, step=0.5)

    def one(point):
        tau, log_length = point
        y, spacing = coarse.levels(tau, log_length)
        rest = jnp.expm1(log_length) * log_survival(y, tau, resolution=coarse)
        terms = jnp.exp(log_length + log_tilted(1, y, tau, resolution=coarse) + rest)
        return jnp.abs(spacing * jnp.sum(terms) - 1)

    return jax.lax.map(one, (taus, log_lengths))
