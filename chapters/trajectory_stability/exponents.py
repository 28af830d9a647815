"""Exponents with which the error of a prompt's gradient falls with its length.

This is a separate module so that a change of the fit does not make cached results stale.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import gammaincc

from chapters.trajectory_stability.checkpoints import GradientErrors
from chapters.trajectory_stability.problems import DIMENSION

# This many lengths distinguish two corrections from the power, and leave two degrees of freedom to test the fit.
MANY = 6


class Rate(NamedTuple):
    """The exponent β of `error ∝ L^-β`, its standard error, and the probability of a worse fit if the curve is true."""

    exponent: float
    std_error: float
    p_value: float


# Exponents at each checkpoint, by task.
Rates = Mapping[str, list[Rate]]


def solve_rates(errors: Mapping[str, GradientErrors]) -> Rates:
    """Return the exponent of the mean squared gap at each checkpoint by task, fitted with a correction 1/L.

    With many lengths there is also a correction 1/√L: a fit without it can look good although its exponent is wrong by
    many standard errors.
    """
    return {name: _fit_rates(these) for name, these in errors.items()}


def _fit_rates(errors: GradientErrors) -> list[Rate]:
    by_checkpoint = np.moveaxis(errors.squared_gaps, 1, 0)
    bends = (np.reciprocal, one_over_root) if len(errors.lengths) >= MANY else (np.reciprocal,)
    return [fit_rate(errors.lengths, gaps, *bends) for gaps in by_checkpoint]


def fit_rate(
    lengths: Sequence[int],
    samples: Float[np.ndarray, "prompts k"],
    *corrections: Callable[[Float[np.ndarray, " k"]], Float[np.ndarray, " k"]],
) -> Rate:
    """Fit `ln error = c - β ln L + Σ_j γ_j correction_j(L)` by generalised least squares and return β.

    A straight line through a curve has a slope with a small error and the wrong value. So corrections are fitted along,
    and their uncertainty widens the error of β, which comes from the full covariance of the means, since lengths share
    prompts (delta method; the mean of a logarithm is corrected to second order). The error is valid if the true curve
    is among those fitted: a small `p_value` shows that it is not, a large one that the data cannot tell. The fit is not
    valid where a few rare prompts carry a mean, or where prompts are not many times more numerous than lengths.
    """
    mean, length = samples.mean(axis=0), np.asarray(lengths, float)
    basis = np.stack([-np.log(length), np.ones_like(length), *(bend(length) for bend in corrections)], axis=1)
    cov = np.cov(samples, rowvar=False) / len(samples) / np.outer(mean, mean)
    logs = np.log(mean) + np.diagonal(cov) / 2
    root = np.linalg.cholesky(cov)
    white_basis, white_logs = np.linalg.solve(root, basis), np.linalg.solve(root, logs)
    inverse = np.linalg.pinv(white_basis)
    coefficients = inverse @ white_logs
    misfit = np.sum((white_logs - white_basis @ coefficients) ** 2)
    freedom = len(length) - basis.shape[1]
    std_error, p_value = float(np.linalg.norm(inverse[0])), float(gammaincc(freedom / 2, misfit / 2))
    return Rate(float(coefficients[0]), std_error, p_value)


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
