"""One head whose scores are multiplied by 1, √(ln L) or ln L: its exact participation and the limits.

At the length `reference` the three scalings are the same head, with scores of standard deviation `ratio`·√(2 ln L).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.temperature_and_length import uniform_scores
from chapters.temperature_and_length.normal_scores import typical_participation
from chapters.temperature_and_length.parameters import LONGEST
from chapters.temperature_and_length.style import FIXED, LOGARITHM, ROOT
from lib.finite_prompt import LARGEST_TAU, participation

# Power of ln L by which each scaling multiplies the scores.
POWERS = {FIXED: 0.0, ROOT: 0.5, LOGARITHM: 1.0}
# Shortest prompt of the curves, as ln L.
SHORTEST = 3.0
# Values of c at which the exponents of mean and typical participation change, by the random-energy model.
MEAN_CHANGES, TYPICAL_CHANGES = 1 / np.sqrt(3.0), 0.5


@dataclass(frozen=True)
class Curve:
    """Spread τ of the scores, and mean and typical participation, at each length for one scaling."""

    log_lengths: Float[np.ndarray, " n"]
    taus: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    typical: Float[np.ndarray, " n"]

    @property
    def ratios(self) -> Float[np.ndarray, " n"]:
        """c = τ/√(2 ln L); at c = 1 the weights freeze."""
        return self.taus / np.sqrt(2 * self.log_lengths)


# By scaling.
Curves = Mapping[str, Curve]


def spreads(reference: int, ratio: float, log_lengths: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
    """Return the standard deviation of the scores at each length, by scaling."""
    start = np.log(reference)
    return {name: ratio * np.sqrt(2 * start) * (log_lengths / start) ** power for name, power in POWERS.items()}


def solve_normal_curves(reference: int, ratio: float, points: int) -> Curves:
    """Return the curves of normal scores over the lengths and spreads for which the quadrature is tested."""
    curves, (start, log_reference) = {}, (ratio * np.sqrt(2 * np.log(reference)), np.log(reference))
    for name, power in POWERS.items():
        end = min(LONGEST, log_reference * (LARGEST_TAU / start) ** (1 / power)) if power else LONGEST
        log_lengths = np.geomspace(SHORTEST, end, points)
        taus = np.minimum(spreads(reference, ratio, log_lengths)[name], LARGEST_TAU)
        log_lengths[-1] = end  # the spacing may round the last length to a value above `end`
        typical = np.asarray([typical_participation(*pair) for pair in zip(taus, log_lengths, strict=True)])
        curves[name] = Curve(log_lengths, taus, np.asarray(participation(taus, log_lengths)), typical)
    return curves


def solve_uniform_curves(reference: int, ratio: float, points: int) -> Curves:
    """Return the curves of scores of the same standard deviation that are uniform on an interval."""
    log_lengths = np.geomspace(SHORTEST, LONGEST, points)
    curves = {}
    for name, taus in spreads(reference, ratio, log_lengths).items():
        pairs = list(zip(np.sqrt(3.0) * taus, log_lengths, strict=True))
        mean, typical = (
            np.asarray([of(*pair) for pair in pairs])
            for of in (uniform_scores.participation, uniform_scores.typical_participation)
        )
        curves[name] = Curve(log_lengths, taus, mean, typical)
    return curves


def mean_exponent(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"]:
    """Return r in `E Σp² = L^{-r + o(1)}` at fixed c, by a heuristic.

    It is `1 - 2c²` up to c = 1/√3, `(1 - c²)²/4c²` from there up to c = 1, and 0 above.
    """
    c = np.asarray(ratio, float)
    between = np.clip(c, MEAN_CHANGES, 1.0)
    rare = (1 - between**2) ** 2 / (4 * between**2)
    return np.where(c <= MEAN_CHANGES, 1 - 2 * c**2, np.where(c < 1, rare, 0.0))


def mean_correction(ratio: float) -> float:
    r"""Return κ in `E Σp² = (B/τ) L^{-r} (1 - κ/ln L + …)` at fixed c between 1/√3 and 1, by a heuristic.

    One token has a score g, and the other exponentials add up to nearly `S = L e^{τ²/2}`, so
    `E Σp² = L E[(1 + S e^{-τg})^{-2}]`. In v = τg - ln S the normal density of g is proportional to
    `e^{-av} e^{-v²/(2τ²)}`, a = (1 + c²)/(2c²). The integral of `e^{-av} (1 + e^{-v})^{-2}` is `M(a) = πs/sin πs`,
    s = a - 1, and the next term of `e^{-v²/(2τ²)}` adds -M''(a)/(2τ²), where τ² = 2c² ln L. So `κ = M''/(4c² M)`.
    """
    s = (1 - ratio**2) / (2 * ratio**2)
    slope = 1 / s - np.pi / np.tan(np.pi * s)  # of ln M
    curvature = (np.pi / np.sin(np.pi * s)) ** 2 - 1 / s**2
    return float((curvature + slope**2) / (4 * ratio**2))


def typical_exponent(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"]:
    """Return the same exponent of `exp E ln Σp²`, the typical participation, by a heuristic.

    It is `1 - 2c²` up to c = ½, `2(1 - c)²` from there up to c = 1, and 0 above.
    """
    c = np.asarray(ratio, float)
    return np.where(c <= TYPICAL_CHANGES, 1 - 2 * c**2, np.where(c < 1, 2 * (1 - c) ** 2, 0.0))


def frozen(ratio: Float[np.ndarray, "*n"] | float) -> Float[np.ndarray, "*n"] | float:
    """Return `(1 - 1/c)₊`, the limit of the mean participation at fixed c in the random-energy model."""
    return 1 - 1 / np.maximum(ratio, 1.0)
