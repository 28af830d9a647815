"""The risk of a head that has not found the relevant token, and the participation of the other tokens in it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.threshold_in_temperature.phases import HIGHEST_TEMPERATURE, LOWEST_TEMPERATURE, log_length, weights
from chapters.threshold_in_temperature.softmax_weights import WeightAverages

# Logarithms of two lengths, and the temperature at which the participation is compared with its limit.
LOG_LENGTHS, COLDER = (45.0, 180.0), 2.0 / 3.0


@dataclass(frozen=True)
class RiskWithoutOverlap:
    """Excess risk by temperature at one length, of a key that is orthogonal to the hidden direction; v = v*."""

    decade: int
    temperatures: Float[np.ndarray, " n"]
    risk: Float[np.ndarray, " n"]
    limit: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class OtherTokens:
    """E Σ p² over the other tokens without an overlap, at two lengths below freezing, and its limit."""

    temperature: float
    log_lengths: tuple[float, float]
    participation: Float[np.ndarray, " two"]
    limit: float


def excess_risk(averages: WeightAverages, value_overlap: float, variance: float) -> float:
    """Return the excess risk over γ² of a head with |v| = 1: 1 - 2 m_v E p_1 + E p_1² + E Σ_{l>1} p_l²/γ²."""
    return 1.0 - 2.0 * value_overlap * averages.relevant + averages.relevant_square + averages.others_square / variance


def frozen_participation(temperature: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"] | float:
    """Return the participation of the random-energy model for L = ∞, which is 0 above freezing."""
    return 1.0 - np.minimum(temperature, 1.0)


def solve_risks(decades: list[int], temperatures: int, variance: float) -> list[RiskWithoutOverlap]:
    """Return the risk without an overlap along the temperature, at each length L = 10^decade."""
    grid = np.linspace(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE, temperatures)

    def risk(decade, temperature):
        return excess_risk(weights(log_length(decade), 0.0, temperature, variance), 1.0, variance)

    limit = 1.0 + frozen_participation(grid) / variance
    return [
        RiskWithoutOverlap(decade, grid, np.array([risk(decade, temperature) for temperature in grid]), limit)
        for decade in decades
    ]


def solve_other_tokens(variance: float) -> OtherTokens:
    """Return the participation of the other tokens in very long prompts of two lengths, at the temperature `COLDER`."""
    values = [weights(length, 0.0, COLDER, variance).others_square for length in LOG_LENGTHS]
    return OtherTokens(COLDER, LOG_LENGTHS, np.array(values), float(frozen_participation(COLDER)))
