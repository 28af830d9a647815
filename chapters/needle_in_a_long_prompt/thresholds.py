"""The signal strengths at which the risk of a head is one half, and two reference lines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import bisect

from lib.single_location import Spiked, bayes_risk, best_elementwise_risk, best_risk, linear

HALF = 0.5
# The length at which the threshold of linear attention is checked by quadrature.
SHORT = 100.0


@dataclass(frozen=True)
class Thresholds:
    """Signal strengths ν at each length L = 10^decade: those with risk one half, or those of a reference line."""

    decades: Float[np.ndarray, " n"]
    snrs: Mapping[str, Float[np.ndarray, " n"]]

    @property
    def lengths(self) -> Float[np.ndarray, " n"]:
        """Prompt lengths L."""
        return 10.0**self.decades


@dataclass(frozen=True)
class LinearRisks:
    """Risk of linear attention at one length: at its own threshold, and at a signal strength of 2 ln L."""

    length: float
    risk: float
    at_softmax_threshold: float


def solve_thresholds(decades: list[int]) -> Thresholds:
    """Return the signal strengths with risk one half, by bisection; for linear attention in closed form."""
    exponents = np.asarray(decades, float)
    risks = {"softmax": bayes_risk, "sigmoid": best_elementwise_risk}
    snrs = {name: solve_half_risk(risk, 10.0**exponents) for name, risk in risks.items()}
    return Thresholds(exponents, {**snrs, "linear": linear_threshold(10.0**exponents)})


def solve_half_risk(risk: Callable[[Spiked], ArrayLike], lengths: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the ν at which `risk(task)`, which falls in ν, is one half, at every length."""

    def solve(length):
        return bisect(lambda snr: float(risk(Spiked(length, snr))) - HALF, 0.5, 3.0 * np.log(length) + 4.0)

    return np.asarray([solve(length) for length in lengths])


def linear_threshold(lengths: Float[np.ndarray, "*n"] | float, risk: float = HALF) -> Float[np.ndarray, "*n"] | float:
    """Return the ν at which linear attention has this risk: the root of `1/(L/(L - 1) + ν/L) = risk`."""
    return lengths * (1.0 / risk - lengths / (lengths - 1.0))


def solve_reference_lines(decades: list[int]) -> Thresholds:
    """Return the lines `2 ln L` and `L`, at every quarter of a decade."""
    exponents = np.arange(4 * min(decades), 4 * max(decades) + 1) / 4
    return Thresholds(exponents, {"2 ln L": 2.0 * np.log(10.0**exponents), "L": 10.0**exponents})


def solve_linear_risks() -> LinearRisks:
    """Return the risk of the best linear head, by quadrature, at its closed-form threshold and at that of softmax."""
    snrs = np.asarray([linear_threshold(SHORT), 2.0 * np.log(SHORT)])
    return LinearRisks(SHORT, *map(float, np.asarray(best_risk(Spiked(SHORT, snrs), linear))))
