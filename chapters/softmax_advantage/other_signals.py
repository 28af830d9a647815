"""OtherSignals of other kinds than the two models give, on prompts of two and three tokens: can softmax use them?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Array, Float

from lib.single_location import (
    Prompts,
    ScoreLattice,
    best_key_slope,
    mixed_risk,
    narrow_log_ratio,
    shared_log_ratio,
    softmax,
)
from lib.single_location.few_tokens import LARGEST_SCORE

LENGTHS = (2, 3)
# Strength of the spike and share in common; and widths of the hidden score.
SHARED = ((1.0, 0.3), (1.0, 0.6), (4.0, 0.0), (4.0, 0.3), (4.0, 0.6))
NARROW = (0.2, 0.4, 0.6)
# Steps of lattices, for two tokens and for three: scores in common bend what is averaged.
STEPS = {2: 0.08, 3: 0.16}


@dataclass(frozen=True)
class OtherSignals:
    """Risks of the best softmax head, and Bayes risks, by length and case.

    `shared`: a spike on scores that have a part in common; `narrow`: a hidden score that is nearer to zero.
    """

    shared: Float[np.ndarray, "lengths cases"]
    shared_bayes: Float[np.ndarray, "lengths cases"]
    narrow: Float[np.ndarray, "lengths widths"]
    narrow_bayes: Float[np.ndarray, "lengths widths"]


def best_softmax_risks() -> OtherSignals:
    """All cases at all lengths."""
    shared, narrow = [], []
    for length in LENGTHS:
        lattice = ScoreLattice(length, step=STEPS[length], highest=LARGEST_SCORE + 2.0)
        shared.append([_risks(lattice, shared_log_ratio(lattice.scores, *case)) for case in SHARED])
        narrow.append([_risks(lattice, narrow_log_ratio(lattice.scores, width)) for width in NARROW])
    (soft, bayes), (soft_narrow, bayes_narrow) = (np.moveaxis(np.asarray(each), 2, 0) for each in (shared, narrow))
    return OtherSignals(soft, bayes, soft_narrow, bayes_narrow)


def _risks(lattice: ScoreLattice, log_hint: Float[Array, "n L"]) -> tuple[float, float]:
    prompts = Prompts.from_log_ratio(lattice, log_hint)
    slope = best_key_slope(softmax, [prompts])
    return float(mixed_risk(softmax, slope, [prompts])), float(prompts.bayes_risk())
