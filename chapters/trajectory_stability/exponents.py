"""How the error of a prompt's gradient falls with its length.

This is a separate module so that another fit does not make cached results stale.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from chapters.trajectory_stability.checkpoints import GradientErrors
from lib.concentration import Rate, error_curve, fit_rate, one_over_length

# So many lengths tell two corrections from the power, and leave two to say whether the curve fits.
MANY = 6
# Of every task: the exponent at each checkpoint.
Rates = Mapping[str, list[Rate]]


def fit_rates(errors: Mapping[str, GradientErrors]) -> Rates:
    """By task, the exponent of the mean squared gap at each checkpoint, a term 1/L fitted along.

    With many lengths a term 1/√L too: a fit without it can be good and its exponent wrong by many standard errors.
    """
    return {name: _fit_rates(these) for name, these in errors.items()}


def _fit_rates(errors: GradientErrors) -> list[Rate]:
    by_checkpoint = np.moveaxis(errors.squared_gaps, 1, 0)
    bends = (one_over_length, one_over_root) if len(errors.lengths) >= MANY else (one_over_length,)
    return [fit_rate(error_curve(errors.lengths, gaps), *bends) for gaps in by_checkpoint]


def one_over_root(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """`1/√L`: a correction that falls more slowly. Which one a loss brings about is not derived; it is seen to fit."""
    return length**-0.5
