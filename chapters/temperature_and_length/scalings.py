"""One head, its scores multiplied by 1, √(ln L) or ln L: how many tokens share the weight, exactly, and in the limit.

At the length `reference` the three are the same head, with scores of standard deviation `ratio`·√(2 ln L).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.temperature_and_length import uniform_scores
from chapters.temperature_and_length.parameters import LONGEST
from chapters.temperature_and_length.style import FIXED, LOGARITHM, ROOT
from lib.finite_prompt import LARGEST_TAU, participation, typical_participation

# The power of ln L that each scaling multiplies the scores by.
POWERS = {FIXED: 0.0, ROOT: 0.5, LOGARITHM: 1.0}
# The shortest prompt of the curves, as ln L.
SHORTEST = 3.0
# Where the random-energy model changes its mind about mean and typical participation.
MEAN_CHANGES, TYPICAL_CHANGES = 1 / np.sqrt(3.0), 0.5


@dataclass(frozen=True)
class Curve:
    """Of one scaling, at each length: the spread τ of the scores, and their participation over prompts."""

    log_lengths: Float[np.ndarray, " n"]
    taus: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    typical: Float[np.ndarray, " n"]

    @property
    def ratios(self) -> Float[np.ndarray, " n"]:
        """c = τ/√(2 ln L); the weights freeze at 1."""
        return self.taus / np.sqrt(2 * self.log_lengths)


# By scaling.
Curves = Mapping[str, Curve]


def spreads(reference: int, ratio: float, log_lengths: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
    """By scaling: the standard deviation of the scores at each length."""
    known = np.log(reference)
    return {name: ratio * np.sqrt(2 * known) * (log_lengths / known) ** power for name, power in POWERS.items()}


def gaussian_scores(reference: int, ratio: float, points: int) -> Curves:
    """Normal scores, from the shortest prompt to the longest that is guaranteed, for a spread that is."""
    curves, (start, log_reference) = {}, (ratio * np.sqrt(2 * np.log(reference)), np.log(reference))
    for name, power in POWERS.items():
        end = min(LONGEST, log_reference * (LARGEST_TAU / start) ** (1 / power)) if power else LONGEST
        log_lengths = np.geomspace(SHORTEST, end, points)
        taus = np.minimum(spreads(reference, ratio, log_lengths)[name], LARGEST_TAU)
        log_lengths[-1] = end  # which the spacing may round to more
        mean, typical = (np.asarray(of(taus, log_lengths)) for of in (participation, typical_participation))
        curves[name] = Curve(log_lengths, taus, mean, typical)
    return curves


def bounded_scores(reference: int, ratio: float, points: int) -> Curves:
    """Scores of the same standard deviation, uniform on an interval."""
    log_lengths = np.geomspace(SHORTEST, LONGEST, points)
    curves = {}
    for name, taus in spreads(reference, ratio, log_lengths).items():
        pairs = list(zip(np.sqrt(3.0) * taus, log_lengths, strict=True))
        mean, typical = (
            np.asarray([of(*pair) for pair in pairs]) for of in (uniform_scores.participation, uniform_scores.typical)
        )
        curves[name] = Curve(log_lengths, taus, mean, typical)
    return curves


def mean_exponent(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"]:
    """r in `E Σp² = L^{-r + o(1)}` at fixed c: `1 - 2c²`, then `(1 - c²)²/4c²` from 1/√3, then 0 from 1 [heuristic]."""
    c = np.asarray(ratio, float)
    between = np.clip(c, MEAN_CHANGES, 1.0)
    rare = (1 - between**2) ** 2 / (4 * between**2)
    return np.where(c <= MEAN_CHANGES, 1 - 2 * c**2, np.where(c < 1, rare, 0.0))


def typical_exponent(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"]:
    """The same of a typical prompt: `1 - 2c²`, then `2(1 - c)²` from ½, then 0 from 1 [heuristic]."""
    c = np.asarray(ratio, float)
    return np.where(c <= TYPICAL_CHANGES, 1 - 2 * c**2, np.where(c < 1, 2 * (1 - c) ** 2, 0.0))


def frozen(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"] | float:
    """`(1 - 1/c)₊`, the limit of mean participation at fixed c: the frozen weights of the random-energy model."""
    return 1 - 1 / np.maximum(ratio, 1.0)
