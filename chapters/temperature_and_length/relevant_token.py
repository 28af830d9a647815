"""Mean weight of one token of fixed score as the number of other tokens grows, under the three scalings."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.temperature_and_length import uniform_scores
from chapters.temperature_and_length.scalings import SHORTEST, spreads
from chapters.temperature_and_length.style import NORMAL, UNIFORM

# Longest prompt of the curves, as ln L: the weights are close to their limits before.
LONGEST = 100.0
# By distribution of the other tokens' scores: ln φ, given their standard deviation.
OTHER_SCORES = {UNIFORM: uniform_scores.log_survival_of_uniform, NORMAL: uniform_scores.log_survival_of_normal}


@dataclass(frozen=True)
class RelevantWeights:
    """Mean weight of the relevant token at each length, for one distribution of other scores and one scaling."""

    law: str
    scaling: str
    log_lengths: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]


def solve_mean_weights(reference: int, ratio: float, height: float, points: int) -> list[RelevantWeights]:
    """Return the mean weight of a token whose score is `height` standard deviations of the others, at every length."""
    log_lengths, curves = np.geomspace(SHORTEST, LONGEST, points), []
    for law, log_survival in OTHER_SCORES.items():
        for scaling, taus in spreads(reference, ratio, log_lengths).items():
            weight = [
                uniform_scores.relevant_weight(height * tau, log_survival(tau), log_length)
                for tau, log_length in zip(taus, log_lengths, strict=True)
            ]
            curves.append(RelevantWeights(law, scaling, log_lengths, np.asarray(weight)))
    return curves
