"""Participation and score error over the plane of (τ, ln L), and two checks of their quadrature."""

from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

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
    pairs = np.empty_like(plane.tau)
    for tau in np.unique(plane.tau):
        pairs[plane.tau == tau] = _pairs(max(tau, 1e-6), plane.log_length[plane.tau == tau])
    long = np.exp(np.minimum(plane.tau**2 - plane.log_length, 0.0))
    return WeightSums(plane.participation + pairs, long + pairs)


def _pairs(tau: float, log_lengths: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return `L (L - 1) ∫ E[e^u exp(-e^u)]² φ^{L-2} dy`, the mean product of weights over pairs of tokens."""
    longest, shortest = (Resolution().levels(tau, length) for length in (log_lengths.max(), log_lengths.min()))
    spacing = float(min(longest[1], shortest[1]))
    y = np.arange(float(longest[0][0]), float(shortest[0][-1]) + spacing, spacing)
    length = log_lengths[:, None]
    rest = (np.expm1(length) - 1) * log_survival(y, tau)
    pairs = spacing * np.sum(np.exp(2 * length + 2 * log_tilted(1, y, tau) + rest), axis=1)
    return -np.expm1(-log_lengths) * pairs


def solve_quadrature_accuracy(*, key: PRNGKeyArray) -> Accuracy:
    """Return the error estimate of the quadrature at random points of the whole guaranteed domain."""
    tau_key, length_key = jr.split(key)
    taus = np.asarray(jr.uniform(tau_key, (PROBES,), minval=0.1, maxval=LARGEST_TAU))
    log_lengths = np.asarray(jr.uniform(length_key, (PROBES,), minval=0.1, maxval=LARGEST_LOG_LENGTH))
    coarse = [_coarse_error(*point) for point in zip(taus, log_lengths, strict=True)]
    return Accuracy(np.asarray(quadrature_error(taus, log_lengths)), np.asarray(coarse))


def _coarse_error(tau: float, log_length: float) -> float:
    """Return the relative error of the sum of the weights with half as many nodes."""
    coarse = Resolution(count=96, step=0.5)
    y, spacing = coarse.levels(tau, log_length)
    rest = np.expm1(log_length) * log_survival(y, tau, resolution=coarse)
    terms = np.exp(log_length + log_tilted(1, y, tau, resolution=coarse) + rest)
    return float(np.abs(spacing * np.sum(terms) - 1))
