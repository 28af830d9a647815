"""The Bayes risk with a relevant token, and the participation without one, along the signal strength."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.needle_in_a_long_prompt.parameters import LONG_DECADE, SHORT_DECADE
from lib.finite_prompt import participation
from lib.single_location import Spiked, bayes_risk


@dataclass(frozen=True)
class Transition:
    """Bayes risk with a relevant token and participation without one, at scores of the same variance ν, for one length.

    `ratios` are ν/(2 ln L), and `frozen` is the participation that the random-energy model gives for L = ∞.
    """

    ratios: Float[np.ndarray, " n"]
    snrs: Float[np.ndarray, " n"]
    risk: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, " n"]
    frozen: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class FrozenWeights:
    """Participation without a relevant token at `excess` times the threshold, for two lengths and for L = ∞."""

    decades: tuple[int, int]
    excess: float
    participation: Float[np.ndarray, " two"]
    frozen: float


def solve_transitions(decades: list[int], ratios: int) -> dict[int, Transition]:
    """Return the transition of each length L = 10^decade, at `ratios` signal strengths ν/(2 ln L) from 0.05 to 2.4."""
    return {decade: _transition(decade, np.linspace(0.05, 2.4, ratios)) for decade in decades}


def _transition(decade: int, ratios: Float[np.ndarray, " n"]) -> Transition:
    log_length = decade * np.log(10.0)
    snrs = 2.0 * log_length * ratios
    return Transition(
        ratios=ratios,
        snrs=snrs,
        risk=np.asarray(bayes_risk(Spiked(10.0**decade, snrs))),
        participation=np.asarray(participation(np.sqrt(snrs), log_length)),
        frozen=frozen(ratios),
    )


def solve_frozen_weights() -> FrozenWeights:
    """Return the participation of a short and of the longest prompt without a relevant token, at twice the
    threshold."""
    decades, excess = (SHORT_DECADE, LONG_DECADE), 2.0
    log_lengths = np.log(10.0) * np.asarray(decades, float)
    values = participation(np.sqrt(2.0 * log_lengths * excess), log_lengths)
    return FrozenWeights(decades, excess, np.asarray(values), float(frozen(excess)))


def frozen(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"] | float:
    """Return the participation for L = ∞ at `ratio` = ν/(2 ln L), which is 0 up to 1 [box `frozen-participation`]."""
    return 1.0 - np.sqrt(1.0 / np.maximum(ratio, 1.0))
