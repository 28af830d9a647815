"""One token of fixed score among many others: what it weighs as the prompt grows, under the three scalings."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.temperature_and_length import uniform_scores
from chapters.temperature_and_length.scalings import SHORTEST, spreads
from chapters.temperature_and_length.style import NORMAL, UNIFORM

# The longest prompt of the curves, as ln L: all is decided before.
LONGEST = 100.0
HAY = {UNIFORM: uniform_scores.uniform_hay, NORMAL: uniform_scores.normal_hay}


@dataclass(frozen=True)
class Weights:
    """Of one law of hay and one scaling: mean weight of the needle at each length."""

    law: str
    scaling: str
    log_lengths: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]


def weigh(reference: int, ratio: float, height: float, points: int) -> list[Weights]:
    """The needle's score is `height` standard deviations of the hay, at every length and under every scaling."""
    log_lengths, found = np.geomspace(SHORTEST, LONGEST, points), []
    for law, hay in HAY.items():
        for scaling, taus in spreads(reference, ratio, log_lengths).items():
            weight = [
                uniform_scores.needle_weight(height * tau, hay(tau), log_length)
                for tau, log_length in zip(taus, log_lengths, strict=True)
            ]
            found.append(Weights(law, scaling, log_lengths, np.asarray(weight)))
    return found
