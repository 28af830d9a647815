"""Exact errors averaged over queries, as sums over one grid of query sizes, and their predicted exponent."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, ive

from chapters.sharp_rates.parameters import READ_AT
from lib.batching import in_batches
from lib.finite_prompt import LARGEST_TAU, rate_exponent, score_statistics

# Node spacing in τ. The narrowest integrand has width 0.37, so the error of the trapezoidal rule is e^-40.
SPACING = 0.25
ALL_TAUS = np.arange(0.0, LARGEST_TAU + SPACING / 2, SPACING)


@dataclass(frozen=True)
class ErrorTable:
    """P and Q on a grid of τ, with their slopes in ln L; averages over queries are sums over this grid.

    With Γ = Γ_q = V = I and singular values h of U, τ² = Σ h_i² x_i² with x standard normal, and a prompt of L tokens
    has the error `Q + (d - 1) P`.
    """

    taus: Float[np.ndarray, " taus"]
    log_lengths: Float[np.ndarray, " lengths"]
    participation: Float[np.ndarray, "lengths taus"]
    score_error: Float[np.ndarray, "lengths taus"]
    participation_slope: Float[np.ndarray, "lengths taus"]
    score_error_slope: Float[np.ndarray, "lengths taus"]

    @classmethod
    def at(cls, log_lengths: list[float], taus: Float[np.ndarray, " taus"] = ALL_TAUS) -> "ErrorTable":
        """Return the table at `log_lengths` and READ_AT; the default `taus` are the whole guaranteed range."""
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
        """Return the table of one length."""
        selected = self.log_lengths == log_length
        rows = (self.participation, self.score_error, self.participation_slope, self.score_error_slope)
        return ErrorTable(self.taus, self.log_lengths[selected], *(row[selected] for row in rows))

    def slope(self, density: Float[np.ndarray, " taus"], dimension: int) -> Float[np.ndarray, " lengths"]:
        """Return `-d ln error / d ln L` of the average over queries whose τ has `density`."""
        error = (self.score_error + (dimension - 1) * self.participation) @ density
        change = (self.score_error_slope + (dimension - 1) * self.participation_slope) @ density
        return -change / error


def statistics_along(tau_squared, rate, log_length) -> tuple[Any, Any]:
    """Return P and Q and their slopes in ln L along a path on which τ² changes by `rate` per unit of ln L."""
    columns = np.broadcast_arrays(np.asarray(tau_squared, float), rate, log_length)
    flat = in_batches(_statistics_along, *(column.ravel() for column in columns))
    return jax.tree.map(lambda values: values.reshape(columns[0].shape), flat)


@jax.jit
def _statistics_along(tau_squared, rate, log_length):
    return jax.jvp(score_statistics, (tau_squared, log_length), (rate, jnp.ones_like(log_length)))


def log_chi_density(radius: Float[np.ndarray, "..."], dimension: int) -> Float[np.ndarray, "..."]:
    """Return the logarithm of the density of ‖z‖ at positive radii, for z ~ N(0, I_d)."""
    half = dimension / 2
    return (dimension - 1) * np.log(radius) - radius**2 / 2 - (half - 1) * np.log(2) - gammaln(half)


def radial_density(taus: Float[np.ndarray, " taus"], norm: float, dimension: int) -> Float[np.ndarray, " taus"]:
    """Return the trapezoid weights of τ = norm · |x|, with x standard normal in `dimension` coordinates."""
    return _ends_halved(np.exp(log_chi_density(np.maximum(taus, 1e-300) / norm, dimension)))


def planar_density(taus: Float[np.ndarray, " taus"], major: float, minor: float) -> Float[np.ndarray, " taus"]:
    """Return the trapezoid weights of τ = √(major² x₁² + minor² x₂²), with x standard normal in the plane."""
    slow, fast = major**-2, minor**-2
    # `ive` is Bessel's I₀ times e^{-argument}, so the remaining Gaussian factor is the one of the slow axis
    return _ends_halved(taus * np.exp(-(taus**2) * slow / 2) * ive(0, taus**2 * (fast - slow) / 4))


def _ends_halved(density: np.ndarray) -> np.ndarray:
    return density * np.where(np.isin(np.arange(density.size), (0, density.size - 1)), 0.5, 1.0)


def exponent(squared_norm) -> np.ndarray:
    """Return β(H) at H² = `squared_norm` (heuristic for H² ≥ ½)."""
    return np.asarray(rate_exponent(np.sqrt(np.asarray(squared_norm))))
