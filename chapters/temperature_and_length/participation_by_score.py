"""Parts of the mean participation by the score of the token that they are due to: exact at one length, and limits."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from scipy.stats import norm

from chapters.temperature_and_length.style import LOG_LENGTH
from lib.finite_prompt import participation

# Sizes c of the scores: below, at and above the one where the largest weight reaches 1.
RATIOS = (0.3, 1 / np.sqrt(3.0), 0.8)
# Largest score, in units of √(2 ln L), number of scores, and scores per batch.
HIGHEST, SCORES, BLOCK = 1.65, 2101, 100
# Nodes for the score of one of the other tokens, in standard deviations, and the distance of the levels y.
TOKENS = np.linspace(-9.0, 45.0, 2701)
LEVEL_STEP = 0.2


@dataclass(frozen=True)
class Parts:
    """Parts of the mean participation by score, at one c.

    `log_part` is ln of the part of `E Σp²` per standard deviation of score, at each of `scores`; `whole` is `E Σp²` by
    the library.
    """

    ratio: float
    scores: Float[np.ndarray, " n"]
    log_part: Float[np.ndarray, " n"]
    whole: float

    @property
    def sum(self) -> float:
        """The sum of all parts."""
        return float(trapezoid(np.exp(self.log_part), self.scores) * np.sqrt(2 * LOG_LENGTH))

    @property
    def top(self) -> float:
        """The score with the largest part."""
        return float(self.scores[np.argmax(self.log_part)])


def solve_participation_by_score() -> list[Parts]:
    """Return the parts at each of the sizes `RATIOS`."""
    return [_parts(ratio) for ratio in RATIOS]


def _parts(ratio: float) -> Parts:
    """Return `L φ(g) E[(e^{τg} / (e^{τg} + S))²]`, S the sum of the others, by `(a/(a+S))² = ∫ t a² e^{-t(a+S)} dt`."""
    largest = np.sqrt(2 * LOG_LENGTH)
    tau, scores = ratio * largest, np.linspace(-0.4, HIGHEST, SCORES)
    # y = ln t, from below the inverse of the largest sum to above the inverse of the smallest
    lowest = -max(tau * largest * HIGHEST, LOG_LENGTH * (1 + ratio**2)) - 40.0
    levels = np.arange(lowest, 100.0 - LOG_LENGTH, LEVEL_STEP)
    mass = norm.pdf(TOKENS) * (TOKENS[1] - TOKENS[0])
    complement = np.array([mass @ -np.expm1(-np.exp(np.minimum(level + tau * TOKENS, 50.0))) for level in levels])
    others = np.expm1(LOG_LENGTH) * np.log1p(-np.minimum(complement, 1 - 1e-16))
    log_weight = np.empty(SCORES)
    for block in np.array_split(np.arange(SCORES), SCORES // BLOCK):
        own = levels + tau * largest * scores[block, None]
        log_weight[block] = logsumexp(2 * own - np.exp(np.minimum(own, 50.0)) + others, axis=1) + np.log(LEVEL_STEP)
    log_part = LOG_LENGTH + norm.logpdf(largest * scores) + log_weight
    return Parts(ratio, scores, log_part, float(participation(tau, LOG_LENGTH)))


def uncapped(ratio: float, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the exponent of L if a weight is `e^{τg}` over the mean of the sum, `1 - x² + 2(2cx - 1 - c²)`."""
    return 1 - scores**2 + 2 * (2 * ratio * scores - 1 - ratio**2)


def limit(ratio: float, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the same exponent with weights of at most 1, by a heuristic for c < 1."""
    return np.minimum(uncapped(ratio, scores), 1 - scores**2)


def capped(ratio: float) -> float:
    """Return the score at the maximum of the limit: 2c, or the score at which the weight reaches 1 if that is lower."""
    return min(2 * ratio, (1 + ratio**2) / (2 * ratio))
