"""The query sizes between which the mean output of a finite prompt leaves the line of the infinite prompt."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lib.finite_prompt import participation

# Prompt lengths and slopes for which the query size is computed.
LENGTHS = (10**3, 10**4, 10**5, 10**6)
SLOPES = (0.95, 0.9, 0.5)
# Up to this multiple of √(2 ln L) the slope is compared with the largest of the slopes above, also at longer prompts.
FOLLOWS = 0.6
DECADES = (3, 4, 5, 6, 12, 24, 48, 96)
# The slope of every prompt with at least `LENGTHS[0]` tokens is below 0.4 at twice √(2 ln L).
FARTHEST, HALVINGS = 2.0, 24
# Nodes of normal scores, their weights, and the distance of the nodes of Laplace's integral: the trapezoidal rule errs
# by less than 1e-9 there.
SCORES = np.arange(-9.0, 9.0, 0.04)
WEIGHTS = 0.04 * np.exp(-0.5 * SCORES**2) / np.sqrt(2 * np.pi)
STEP = 0.3


@dataclass(frozen=True)
class Crossing:
    """The query size τ/√(2 ln L) at which the mean output of prompts of `length` tokens has a `slope` below 1.

    Attributes:
      length: L.
      slope: the slope of the mean output, 1 - P.
      ratio: the query size at which 1 - P has this value.
      by_log_sum: the same from another integral, as τ (1 - P) is the derivative of E log Σ exp(τg) in τ.
    """

    length: int
    slope: float
    ratio: float
    by_log_sum: float


@dataclass(frozen=True)
class Crossover:
    """Where the mean output leaves the line.

    `crossings` are ordered by length and falling slope. `least_slope` is the smallest slope at the query size `FOLLOWS`
    over prompts of 10^`DECADES` tokens; `asymptotic` is the same with $P = e^{τ²}/L$, its form for long prompts.
    """

    crossings: tuple[Crossing, ...]
    least_slope: float
    asymptotic: float


def _slope_by_log_sum(tau: float, log_length: float) -> float:
    """Return `(1/τ) d/dτ E log Σ exp(τg)` with the derivative of `log S = ∫ (e^-t - e^-tS) dt/t`, t = e^y."""
    y = np.arange(-9 * tau - 30, 6.0, STEP)[:, None]
    exponent = y + tau * SCORES
    hit = np.exp(np.minimum(exponent, 6.5))
    log_survival = np.log1p(np.expm1(-hit) @ WEIGHTS)
    rate = np.exp(exponent - hit) @ (WEIGHTS * SCORES)
    return float(STEP * np.sum(np.exp(log_length + np.expm1(log_length) * log_survival) * rate) / tau)


def solve_crossover() -> Crossover:
    """Return the query sizes at which the mean output has each of `SLOPES`, for each of `LENGTHS`."""
    lengths, slopes = (grid.ravel() for grid in np.meshgrid(LENGTHS, SLOPES, indexing="ij"))
    log_lengths = np.log(lengths)
    unit = np.sqrt(2 * log_lengths)

    def ratios(slope: Callable) -> list[float]:
        low, high = np.zeros(slopes.size), np.full(slopes.size, FARTHEST)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            above = np.asarray(slope(middle * unit)) > slopes
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return (0.5 * (low + high)).tolist()

    columns = (
        ratios(lambda taus: 1 - participation(taus, log_lengths)),
        ratios(lambda taus: list(map(_slope_by_log_sum, taus, log_lengths))),
    )
    longer = np.asarray(DECADES) * np.log(10.0)
    taus = FOLLOWS * np.sqrt(2 * longer)
    return Crossover(
        tuple(map(Crossing, lengths.tolist(), slopes.tolist(), *columns)),
        least_slope=float(np.min(1 - participation(taus, longer))),
        asymptotic=float(np.min(1 - np.exp(taus**2 - longer))),
    )
