"""The participation of a typical prompt of normal scores, at any length: what rare prompts hardly influence.

With u = y + τg, g ~ N(0, 1), the averages over one token are those of `lib.partition`: φ = E exp(-e^u) and
E[e^u exp(-e^u)]. Derived here, see book/temperature_and_length.
"""

import numpy as np

from lib.partition import Resolution, log_survival, log_tilted


def typical_participation(tau: float, log_length: float) -> float:
    """Return `exp E ln Σp²`, from `ln Σp² = ln S(2τ) - 2 ln S(τ)`, for 0 < τ ≤ 30 and 0 ≤ ln L ≤ 330.

    Its relative error is below 1e-9, which is rounding where E ln S is 1500.
    """
    return float(np.exp(mean_log_sum(2 * tau, log_length) - 2 * mean_log_sum(tau, log_length)))


def mean_log_sum(tau: float, log_length: float) -> float:
    """Return `E ln S = -γ - ∫ y L E[e^{u-e^u}] φ^{L-1} dy`, where S is the sum of the L exponentials of the scores."""
    y, spacing = Resolution().levels(tau, log_length)
    with np.errstate(all="ignore"):  # far from the scores exponentials overflow or vanish
        log_others = np.expm1(log_length) * log_survival(y, tau)
        density = np.exp(log_length + log_tilted(1, y, tau) + log_others)
    return float(-np.euler_gamma - spacing * np.sum(y * density))
