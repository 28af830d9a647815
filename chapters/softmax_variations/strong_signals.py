"""The spiked model at strong signals: exact risks, and the limit formulas that they tend to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.special import beta

from chapters.softmax_variations.models import bayes_risk
from lib.single_location import Spiked, best_elementwise_risk, best_risk, hardmax, linear

# Signal strengths between which exponents are measured, twice: first to second, and second to third.
WEAKER, STRONG, STRONGEST = 22.5, 45.0, 90.0
# Lengths at which constants are compared with those of the limit formulas.
EVERY_LENGTH = (2, 3, 5, 10, 30, 100)
# The constant of softmax is measured at this signal strength, at twice and at four times that.
CONSTANT = 60.0
STRONG_LIMITS = {
    "softmax": lambda length, snr: (length - 1) * 0.5 * np.sqrt(np.pi / snr) * np.exp(-snr / 4),
    "hardmax": lambda length, snr: (length - 1) * (2 / np.sqrt(np.pi * snr)) * np.exp(-snr / 4),
    "sigmoid": lambda length, snr: np.sqrt((length - 1) * np.pi / (2 * snr)) * np.exp(-snr / 8),
    "linear": lambda length, snr: length / snr,
}


@dataclass(frozen=True)
class Risks:
    """The lowest risk of each kind of head along signal strengths ν, for one length."""

    snrs: Float[np.ndarray, " snrs"]
    by_head: Mapping[str, Float[np.ndarray, " snrs"]]


@dataclass(frozen=True)
class LimitConstants:
    """The constants of two limit formulas per length, measured twice, so that the error of the second is known.

    Rows are readings, both extrapolated in 1/ν from a pair of signals, the second pair twice as strong. `linear` is
    ν times the risk, and `softmax` the risk over `√(π/ν) e^{-ν/4}`.
    """

    lengths: Int[np.ndarray, " lengths"]
    linear: Float[np.ndarray, "2 lengths"]
    softmax: Float[np.ndarray, "2 lengths"]


def solve_limit_constants() -> LimitConstants:
    """Extrapolate the constants of the best linear and softmax heads in the spiked model, at every length."""
    lengths = np.asarray(EVERY_LENGTH)

    def readings(risk, scale, weakest):
        snrs = np.asarray([1.0, 2.0, 4.0])[:, None] * weakest
        scaled = np.asarray(risk(Spiked(np.broadcast_to(lengths, snrs.shape), snrs))) / scale(snrs)
        return 2 * scaled[1:] - scaled[:-1]

    def exponential(snr):
        return np.sqrt(np.pi / snr) * np.exp(-snr / 4)

    even = np.full(lengths.shape, CONSTANT)
    return LimitConstants(
        lengths,
        readings(lambda tasks: best_risk(tasks, linear), lambda snr: 1 / snr, 1000.0 * lengths),
        readings(bayes_risk, exponential, even),
    )


def largest_softmax_error(lengths: Int[np.ndarray, " lengths"]) -> float:
    """Return a bound of the relative distance of the second reading of the softmax constants from the limits.

    For two tokens the risk over its limit is `1 - π²/4ν + 5π⁴/32ν² - ...`, an alternating series of falling terms: the
    reading `2f(2ν) - f(ν)` removes the term in 1/ν and misses 1 by less than `5π⁴/64ν²`, on the lower side. A third
    token as close as the first two lowers the risk of L tokens, relative to the limit formula, by less than
    `(L - 2) (K/π^{3/2}) e^{-ν/12}/√(3ν)`, K = (2π/√3) B(2/3, 2/3), and so raises the reading.
    """
    snr = 2.0 * CONSTANT  # the weaker signal of the second pair
    next_term = 5 * np.pi**4 / (64 * snr**2)
    constant = 2 * np.pi / np.sqrt(3) * beta(2 / 3, 2 / 3) / np.pi**1.5
    third_tokens = (lengths.max() - 2) * constant * np.exp(-snr / 12) / np.sqrt(3 * snr)
    return float(max(next_term, third_tokens))


def solve_best_risks(lengths: Iterable[int]) -> dict[int, Risks]:
    """Return exact risks in the spiked model along strong signals, by length; two tokens are always included."""
    snrs = np.sort(np.append(np.geomspace(4.0, STRONGEST, 18), [WEAKER, STRONG]))
    return {length: _best_risks(Spiked(length, snrs), snrs) for length in sorted({2, *lengths})}


def _best_risks(tasks: Spiked, snrs: Float[np.ndarray, " snrs"]) -> Risks:
    exact = {
        "softmax": bayes_risk(tasks),
        "hardmax": np.asarray(best_risk(tasks, hardmax)),
        "sigmoid": np.asarray(best_elementwise_risk(tasks)),
        "linear": np.asarray(best_risk(tasks, linear)),
    }
    return Risks(snrs, exact)
