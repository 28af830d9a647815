"""Claims on the numbers of the by-hand cells."""

import numpy as np
from scipy.stats import norm

from companion import Claims
from lib.single_location import Spiked, bayes_risk
from lib.statistics import standard_error

LENGTH = 1000
STRENGTH = 2 * np.log(LENGTH)


def finds_the_relevant_token(found: np.ndarray) -> Claims:
    """Claim how often the score of the relevant token is the largest of 1,000, at the strength 2 ln L."""
    claim = Claims("needle-by-hand", source="derived here")
    claim.equal(
        "found",
        "With 1,000 tokens and the signal strength $2 ln L$ the relevant token has the largest score as often as the "
        "exact integral says.",
        found.mean(),
        _largest(STRENGTH),
        std_error=standard_error(found),
        count=(found.sum(), found.size),
        rejects=("half of the signal strength is enough", _largest(STRENGTH / 2)),
    )
    return claim


def _largest(strength: float) -> float:
    """Return the probability that a normal of mean √strength exceeds 999 standard normals."""
    score, step = np.linspace(-9, 9, 2001, retstep=True)
    return float(np.sum(norm.pdf(score) * norm.cdf(score + strength**0.5) ** (LENGTH - 1)) * step)


def weighs_the_relevant_token(weights: np.ndarray) -> Claims:
    """Claim the mean weight of the relevant token under the best softmax head, at the same strength."""
    claim = Claims("needle-by-hand", source="derived here")
    claim.equal(
        "weight",
        "With 1,000 tokens and the signal strength $2 ln L$ the mean weight of the relevant token in the best softmax "
        "head is 1 minus the Bayes risk.",
        weights.mean(),
        1 - bayes_risk(Spiked(LENGTH, STRENGTH)),
        std_error=standard_error(weights),
        rejects=("half of the signal strength is enough", 1 - bayes_risk(Spiked(LENGTH, STRENGTH / 2))),
    )
    return claim
