"""The width of the transition: the range of amplitudes over which the weight of the relevant token rises."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logit, ndtri

from chapters.threshold_in_temperature.phases import COLD, HOT, amplitude_with_weight, log_length, spread

# The width is the distance between the amplitudes at which the mean weight has these values.
LOW, HIGH = 0.2, 0.8


@dataclass(frozen=True)
class Widths:
    """Widths by length at one temperature: exact, of the mean-field formula, and in the limit of long prompts."""

    temperature: float
    decades: Float[np.ndarray, " n"]
    exact: Float[np.ndarray, " n"]
    mean_field: Float[np.ndarray, " n"]
    limit: float


def limit_width(variance: float) -> float:
    """Return the width for L = ∞: that of the distribution of the relevant token's score, N(·, γ²) in units of τ."""
    return float(np.sqrt(variance) * (ndtri(HIGH) - ndtri(LOW)))


def mean_field_width(decade: float, temperature: float) -> float:
    """Return the width of the mean-field formula, a logistic function with the slope τ."""
    return float((logit(HIGH) - logit(LOW)) / spread(log_length(decade), temperature))


def relative_correction(decade: float, temperature: float, variance: float) -> float:
    """Return by how much the limit falls short of the width, to first order in 1/ln L and relative to the limit.

    The weight is a logistic function of the relevant score less the logarithm of the others' sum, so variances add:
    π²/3 over τ² for the logistic function and, below freezing, at most π²/6 over 2 ln L for the largest score.
    """
    length = log_length(decade)
    largest = np.pi**2 / (12.0 * length) if temperature < 1 else 0.0
    return float((np.pi**2 / (3.0 * spread(length, temperature) ** 2) + largest) / (2.0 * variance))


def solve_widths(decades: list[int], variance: float) -> list[Widths]:
    """Return the widths at ascending lengths L = 10^decade, at half and at twice the freezing temperature."""
    return [_widths(np.array(decades, float), temperature, variance) for temperature in (COLD, HOT)]


def _widths(decades: Float[np.ndarray, " n"], temperature: float, variance: float) -> Widths:
    def exact(decade):
        low, high = (amplitude_with_weight(weight, log_length(decade), temperature, variance) for weight in (LOW, HIGH))
        return high - low

    return Widths(
        temperature,
        decades,
        np.array([exact(decade) for decade in decades]),
        np.array([mean_field_width(decade, temperature) for decade in decades]),
        limit_width(variance),
    )
