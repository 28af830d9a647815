"""Weights of a softmax head by temperature and signal: their limits, their exact averages, and the thresholds.

Scores are normal: those of the L - 1 other tokens have the mean 0 and the standard deviation τ, that of the relevant
token has the mean τ√ν and the standard deviation γτ. The temperature is √(2 ln L)/τ, and √ν is called the amplitude.
"""

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from chapters.threshold_in_temperature.softmax_weights import WeightAverages, softmax_weight_averages

# The variance of the relevant token in the spiked model, and the range of temperatures.
SPIKED_VARIANCE, LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1.0, 0.3, 3.0
# The length, and the temperatures on both sides of freezing, at which claims compare exact values with limits.
SHORT_DECADE, LONG_DECADE, COLD, HOT = 4, 12, 0.5, 2.0
# The search for an amplitude ends at this accuracy of the normal quantile of the weight, after at most so many steps.
QUANTILE_ERROR, MOST_STEPS = 1e-9, 60


@dataclass(frozen=True)
class Thresholds:
    """Signal strengths by temperature at one length: those with a mean weight of ½, exact, in units of 2 ln L."""

    decade: int
    temperatures: Float[np.ndarray, " n"]
    exact: Float[np.ndarray, " n"]


_compiled = jax.jit(softmax_weight_averages)


def log_length(decade: float) -> float:
    """Return ln L for L = 10^decade."""
    return float(decade * np.log(10.0))


def spread(log_length: float, temperature: float) -> float:
    """Return τ, the standard deviation of the scores of the other tokens."""
    return float(np.sqrt(2.0 * log_length) / temperature)


def limit_amplitude(temperature: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"] | float:
    """Return ψ, the amplitude at the threshold in units of √(2 ln L), for L = ∞: (T + 1/T)/2 above freezing, 1 below.

    Source: [Do25], in these units.
    """
    hot = np.maximum(temperature, 1.0)
    return 0.5 * (hot + 1.0 / hot)


def mean_field_weight(
    log_length: float, amplitude: Float[np.ndarray, "*n"] | float, temperature: float
) -> Float[np.ndarray, "*n"] | float:
    """Return the weight of the relevant token in the limit of [Do25], 1/(1 + e^{-τ(√ν - ψ√(2 ln L))})."""
    threshold = limit_amplitude(temperature) * np.sqrt(2.0 * log_length)
    return 1.0 / (1.0 + np.exp(-spread(log_length, temperature) * (amplitude - threshold)))


def weights(log_length: float, amplitude: float, temperature: float, variance: float) -> WeightAverages:
    """Return the exact averages of the weights.

    Args:
      log_length: natural logarithm of the prompt length L.
      amplitude: √ν, by which the score of the relevant token is higher, in units of τ.
      temperature: √(2 ln L)/τ.
      variance: γ², the variance of the relevant token's score in units of τ².
    """
    tau = spread(log_length, temperature)
    averages = _compiled(log_length, float(tau * amplitude), tau, float(tau * np.sqrt(variance)))
    return jax.tree.map(float, averages)


def amplitude_with_weight(weight: float, log_length: float, temperature: float, variance: float) -> float:
    """Return the amplitude √ν at which the mean weight of the relevant token is `weight`.

    The normal quantile of the mean weight is nearly an affine function of the amplitude, so secants converge quickly.
    """

    def missing(amplitude):
        return float(ndtri(weights(log_length, amplitude, temperature, variance).relevant) - ndtri(weight))

    last = float(limit_amplitude(temperature) * np.sqrt(2.0 * log_length))
    last_missing = missing(last)
    amplitude = last - np.sqrt(variance) * last_missing
    for _ in range(MOST_STEPS):
        now = missing(amplitude)
        if abs(now) < QUANTILE_ERROR:
            return amplitude
        last, last_missing, amplitude = amplitude, now, amplitude - now * (amplitude - last) / (now - last_missing)
    raise RuntimeError(f"no amplitude has the weight {weight} at ln L = {log_length}, temperature {temperature}")


def solve_thresholds(decades: list[int], temperatures: int) -> list[Thresholds]:
    """Return the strengths ν with a mean weight of ½ in the spiked model, at each length L = 10^decade."""
    grid = np.linspace(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE, temperatures)
    return [Thresholds(decade, grid, _scaled_thresholds(decade, grid)) for decade in decades]


def _scaled_thresholds(decade: int, temperatures: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    length = log_length(decade)
    half = [amplitude_with_weight(0.5, length, temperature, SPIKED_VARIANCE) for temperature in temperatures]
    return np.square(half) / (2.0 * length)


@dataclass(frozen=True)
class TwoPhases:
    """Strengths ν with a mean weight of ½ over 2 ln L: below freezing at two lengths, above it at the longer one."""

    decades: tuple[int, int]
    cold: Float[np.ndarray, " two"]
    hot: float


def solve_two_phases() -> TwoPhases:
    """Return the thresholds at half and at twice the freezing temperature."""
    decades = SHORT_DECADE, LONG_DECADE
    cold = np.concatenate([_scaled_thresholds(decade, np.array([COLD])) for decade in decades])
    return TwoPhases(decades, cold, float(_scaled_thresholds(LONG_DECADE, np.array([HOT]))[0]))
