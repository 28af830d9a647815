"""How the error of a prompt's gradient falls with its length; by itself, so that another fit leaves pieces alone."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from chapters.trajectory_stability.checkpoints import GradientErrors
from lib.concentration import ErrorCurve, Rate, error_curve, fit_rate, one_over_length

# A curve that fits so badly by chance once in a hundred times is taken for one of another form, of four coefficients.
UNLIKELY, MOST_COEFFICIENTS = 0.01, 4
# Of every task: the exponent at each checkpoint.
Rates = Mapping[str, list[Rate]]


def fit_rates(errors: Mapping[str, GradientErrors]) -> Rates:
    """By task, the exponent of the mean squared gap at each checkpoint, a term 1/L fitted along.

    Where the curve is not of that form, by its `p_value`, and has a length to spare, a term 1/√L too.
    """
    return {name: _fit_rates(these) for name, these in errors.items()}


def _fit_rates(errors: GradientErrors) -> list[Rate]:
    by_checkpoint = np.moveaxis(errors.squared_gaps, 1, 0)
    return [_fit_rate(error_curve(errors.lengths, gaps)) for gaps in by_checkpoint]


def _fit_rate(curve: ErrorCurve) -> Rate:
    rate = fit_rate(curve, one_over_length)
    enough = len(curve.lengths) > MOST_COEFFICIENTS
    return fit_rate(curve, one_over_length, one_over_root) if rate.p_value < UNLIKELY and enough else rate


def one_over_root(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """`1/√L`: a correction that falls more slowly. Which one a loss brings about is not derived; it is seen to fit."""
    return length**-0.5
