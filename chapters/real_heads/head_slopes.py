"""The slopes of the heads on the text, compared with those on Gaussian tokens."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.real_heads.statistics import Control, Heads, HeadStatistics, Measured, bootstrap, measure


@dataclass(frozen=True)
class Slopes:
    """Slopes of all heads on the text, compared with those on Gaussian tokens.

    `errors` are standard errors on the text. `shortfall` is the mean over heads of 1 - P minus the slope; its
    alternative is that on Gaussian tokens. `deviations` of simulated Gaussian prompts are from the exact slope, and
    `unshrunk` are from 1, both in standard errors.
    """

    errors: Heads
    shortfall: Measured
    deviations: Heads
    unshrunk: Heads


def solve_slopes(heads: HeadStatistics, control: Control, *, key: PRNGKeyArray) -> Slopes:
    """Compare the slopes on the text with those on Gaussian tokens."""

    def shortfall(statistics: HeadStatistics | Control) -> float:
        return float(np.mean(statistics.expected_slope - statistics.slope))

    deviations, unshrunk = ((control.slope - expected) / control.slope_se for expected in (control.expected_slope, 1.0))
    return Slopes(
        errors=bootstrap(lambda sample: sample.slope, heads, key=key),
        shortfall=measure(shortfall, heads, alternative=shortfall(control), key=key),
        deviations=deviations,
        unshrunk=unshrunk,
    )
