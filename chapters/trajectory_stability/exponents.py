"""Exponents with which the error of a prompt's gradient falls with its length.

This is a separate module so that a change of the fit does not make cached results stale.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from chapters.trajectory_stability.checkpoints import GradientErrors
from chapters.trajectory_stability.problems import DIMENSION
from lib.concentration import ErrorCurve

# This many lengths distinguish two corrections from the power, and leave two degrees of freedom to test the fit.
MANY = 6
# Exponents at each checkpoint, by task.
Rates = Mapping[str, list[Any]]


def solve_rates(errors: Mapping[str, GradientErrors]) -> Rates:
    """Return the exponent of the mean squared gap at each checkpoint by task, fitted with a correction 1/L.

    With many lengths there is also a correction 1/√L: a fit without it can look good although its exponent is wrong by
    many standard errors.
    """
    return {name: _fit_rates(these) for name, these in errors.items()}


def _fit_rates(errors: GradientErrors) -> list[Any]:
    by_checkpoint = np.moveaxis(errors.squared_gaps, 1, 0)
    bends = (np.reciprocal, one_over_root) if len(errors.lengths) >= MANY else (np.reciprocal,)
    return [ErrorCurve.of(errors.lengths, gaps).fit_rate(*bends) for gaps in by_checkpoint]


def left_out(errors: GradientErrors) -> Float[np.ndarray, " 3"]:
    """Return the change of the exponent, at each checkpoint, by the first power of 1/L that the fit leaves out.

    The relative corrections of the error are taken as powers of (d+2)/L, the size of those of Gaussian regression.
    """
    power = 1.5 if len(errors.lengths) >= MANY else 2.0
    factor = np.exp(((DIMENSION + 2) / np.asarray(errors.lengths)) ** power)
    bent = GradientErrors(errors.lengths, errors.squared_gaps * factor)
    changes = [more.exponent - rate.exponent for more, rate in zip(_fit_rates(bent), _fit_rates(errors), strict=True)]
    return np.abs(changes)


def one_over_root(length: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Return `1/√L`, a correction that falls more slowly. It is not derived which loss causes it; it fits."""
    return length**-0.5
