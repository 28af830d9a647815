"""How the error of a prompt's gradient falls with its length; by itself, so that another fit leaves the pieces alone."""

from collections.abc import Mapping

import numpy as np

from chapters.trajectory_stability.checkpoints import GradientErrors
from lib.concentration import Rate, error_curve, fit_rate, one_over_length

# Of every task: the exponent at each checkpoint.
Rates = Mapping[str, list[Rate]]


def fit_rates(errors: Mapping[str, GradientErrors]) -> Rates:
    """By task, the exponent of the mean squared gap at each checkpoint, a term 1/L fitted along."""
    return {name: _fit_rates(these) for name, these in errors.items()}


def _fit_rates(errors: GradientErrors) -> list[Rate]:
    by_checkpoint = np.moveaxis(errors.squared_gaps, 1, 0)
    return [fit_rate(error_curve(errors.lengths, gaps), one_over_length) for gaps in by_checkpoint]
