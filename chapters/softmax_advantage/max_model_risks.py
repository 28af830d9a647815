"""Risks of the max model as prompts get longer, at fixed signal strengths and at one that grows with the length."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.softmax_advantage.models import bayes_risk
from lib.finite_prompt import participation
from lib.single_location import Max, best_risk, linear

# Fixed signal strengths, and the factor of one that grows; the quadrature covers the latter up to the longest prompt.
FIXED, GROWING = (2.0, 6.0, 12.0), 1.5
MIDDLE, LONG, LONGEST, STEPS = 50.0, 100.0, 200.0, 88
# Decimal logarithms of the lengths at which linear attention is computed; the library goes up to 10^12.
DECADES = (1, 2, 4, 6, 8, 12)


@dataclass(frozen=True)
class LongPrompts:
    """Bayes risks of the max model along ln L: by fixed ν, and at ν = `GROWING`·√(2 ln L).

    `linear` and `certain` are the least risk of linear attention and the Bayes risk at ν = ∞, by the decade of L.
    """

    log_lengths: Float[np.ndarray, " n"]
    fixed: dict[float, Float[np.ndarray, " n"]]
    growing: Float[np.ndarray, " n"]
    linear: dict[int, float]
    certain: dict[int, float]


def solve_long_prompts() -> LongPrompts:
    """Return `1 - E Σp²` of L normal scores of standard deviation ν, by quadrature, and the risks at ν = ∞."""
    log_lengths = np.sort([*np.geomspace(np.log(2.0), LONGEST, STEPS), MIDDLE, LONG])
    strengths = np.stack([*(np.full_like(log_lengths, snr) for snr in FIXED), GROWING * np.sqrt(2 * log_lengths)])
    *fixed, growing = 1.0 - np.asarray(participation(strengths, np.broadcast_to(log_lengths, strengths.shape)))
    linear_risks = {decade: float(best_risk(Max(10.0**decade, np.inf), linear)) for decade in DECADES}
    certain = {decade: float(bayes_risk(Max(10.0**decade, np.inf))) for decade in DECADES}
    return LongPrompts(log_lengths, dict(zip(FIXED, fixed, strict=True)), growing, linear_risks, certain)
