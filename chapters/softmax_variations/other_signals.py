"""The best softmax head and the Bayes risk for other signals than those of the two models, with two or three tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from chapters.softmax_variations.log_ratios import LogRatios, Scores, narrow_log_ratio, shared_log_ratio
from lib.single_location import Prompts, softmax

LENGTHS = (2, 3)
# Strength of the spike and correlation of the scores; and standard deviations of the relevant score.
SHARED = ((1.0, 0.3), (1.0, 0.6), (4.0, 0.0), (4.0, 0.3), (4.0, 0.6))
NARROW = (0.2, 0.4, 0.6)
# Steps of the lattices by length; a common part of the scores makes the averaged function less smooth.
STEPS = {2: 0.08, 3: 0.16}


@dataclass(frozen=True)
class OtherSignals:
    """Risks of the best softmax head, and Bayes risks, by length and case.

    `shared`: a spike on scores with a common part; `narrow`: a relevant score that is nearer to zero than the others.
    """

    shared: Float[np.ndarray, "lengths cases"]
    shared_bayes: Float[np.ndarray, "lengths cases"]
    narrow: Float[np.ndarray, "lengths widths"]
    narrow_bayes: Float[np.ndarray, "lengths widths"]


def solve_best_softmax_risks() -> OtherSignals:
    """Return the risks of all cases at all lengths."""
    shared, narrow = [], []
    for length in LENGTHS:
        shared.append([_risks(length, partial(shared_log_ratio, snr=snr, correlation=rho)) for snr, rho in SHARED])
        narrow.append([_risks(length, partial(narrow_log_ratio, width=width)) for width in NARROW])
    (softmax_shared, bayes_shared), (softmax_narrow, bayes_narrow) = (
        np.moveaxis(np.asarray(risks), 2, 0) for risks in (shared, narrow)
    )
    return OtherSignals(softmax_shared, bayes_shared, softmax_narrow, bayes_narrow)


def _risks(length: int, log_ratio: Callable[[Scores], LogRatios]) -> tuple[float, float]:
    prompts = Prompts.of(log_ratio, length, step=STEPS[length], shift=2.0)
    return Prompts.best_key_risk(softmax, [prompts])[1], float(prompts.bayes_risk())
