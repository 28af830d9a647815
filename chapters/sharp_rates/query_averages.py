"""Exact errors averaged over queries, as sums over one grid of query sizes, and the exponent they should have."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import ive

from chapters.sharp_rates.parameters import READ_AT
from lib.batching import tabulate
from lib.concentration import log_chi_density
from lib.finite_prompt import LARGEST_TAU, ScoreStatistics, rate_exponent, score_statistics

# Node spacing in τ. The narrowest integrand has width 0.37: the trapezoid is then exact to e^-40.
SPACING = 0.25
ALL_TAUS = np.arange(0.0, LARGEST_TAU + SPACING / 2, SPACING)


@dataclass(frozen=True)
class ErrorTable:
    """P and Q on a grid of τ, with their slopes in ln L: every average over queries is a sum over this grid.

    With Γ = Γ_q = V = I and U of singular values h, τ² = Σ h_i² x_i² with x standard normal, and a prompt of L tokens
    misses by `Q + (d - 1) P`.
    """

    taus: Float[np.ndarray, " taus"]
    log_lengths: Float[np.ndarray, " lengths"]
    participation: Float[np.ndarray, "lengths taus"]
    score_error: Float[np.ndarray, "lengths taus"]
    participation_slope: Float[np.ndarray, "lengths taus"]
    score_error_slope: Float[np.ndarray, "lengths taus"]

    @classmethod
    def at(cls, log_lengths: list[float], taus: Float[np.ndarray, " taus"] = ALL_TAUS) -> "ErrorTable":
        """By default the whole guaranteed range of τ, enough for every average; READ_AT is added to the lengths."""
        log_lengths = sorted({*log_lengths, READ_AT})
        values, slopes = statistics_along(taus**2, 0.0, np.asarray(log_lengths)[:, None])
        return cls(
            taus,
            np.asarray(log_lengths),
            values.participation,
            values.score_error,
            slopes.participation,
            slopes.score_error,
        )

    def at_length(self, log_length: float) -> "ErrorTable":
        """The rows of one length."""
        mine = self.log_lengths == log_length
        rows = (self.participation, self.score_error, self.participation_slope, self.score_error_slope)
        return ErrorTable(self.taus, self.log_lengths[mine], *(row[mine] for row in rows))

    def slope(self, density: Float[np.ndarray, " taus"], dimension: int) -> Float[np.ndarray, " lengths"]:
        """`-d ln error / d ln L` of the average over queries whose τ has `density`."""
        error = (self.score_error + (dimension - 1) * self.participation) @ density
        change = (self.score_error_slope + (dimension - 1) * self.participation_slope) @ density
        return -change / error


def statistics_along(tau_squared, climb, log_length) -> tuple[ScoreStatistics, ScoreStatistics]:
    """P and Q, and their slopes in ln L where τ² climbs by so much with each unit of it: one program for all climbs."""
    return tabulate(_statistics_along, tau_squared, climb, log_length)


def _statistics_along(tau_squared, climb, log_length):
    return jax.jvp(score_statistics, (tau_squared, log_length), (climb, jnp.ones_like(log_length)))


def radial_density(taus: Float[np.ndarray, " taus"], norm: float, dimension: int) -> Float[np.ndarray, " taus"]:
    """Trapezoid weights of τ = norm · |x|, x standard normal in `dimension` coordinates."""
    return _ends_halved(np.exp(log_chi_density(np.maximum(taus, 1e-300) / norm, dimension)))


def planar_density(taus: Float[np.ndarray, " taus"], major: float, minor: float) -> Float[np.ndarray, " taus"]:
    """Trapezoid weights of τ = √(major² x₁² + minor² x₂²), x standard normal in the plane."""
    slow, fast = major**-2, minor**-2
    # Bessel's I₀ comes scaled by e^{-argument}: what is left of the Gaussian is its slow axis
    return _ends_halved(taus * np.exp(-(taus**2) * slow / 2) * ive(0, taus**2 * (fast - slow) / 4))


def _ends_halved(density: np.ndarray) -> np.ndarray:
    return density * np.where(np.isin(np.arange(density.size), (0, density.size - 1)), 0.5, 1.0)


def exponent(squared_norm) -> np.ndarray:
    """β(H) at H² = `squared_norm`, by the heuristic."""
    return np.asarray(rate_exponent(np.sqrt(np.asarray(squared_norm))))
