"""Error bars: of a mean, and of the largest among many comparisons.

All functions take and return NumPy arrays and Python numbers, and compute in float64.
"""

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

__all__ = [
    "comparison_quantile",
    "standard_error",
    "tells_apart",
    "worst_deviation",
]


def standard_error(samples: np.ndarray, axis: int = 0) -> np.ndarray | np.floating:
    """Return `s/√n`, the standard error of the mean of n independent samples.

    Args:
      samples: the samples, any shape, n ≥ 2 along `axis`.
      axis: the axis of the mean.

    Returns:
      The standard error, of the shape of `samples` without `axis`; a scalar for a vector.
    """
    samples = np.asarray(samples)
    return samples.std(axis=axis, ddof=1) / np.sqrt(samples.shape[axis])


def comparison_quantile(comparisons: int, confidence: float = 0.999, *, samples: int | None = None) -> float:
    """Return z with `P(max |g_i| ≤ z) = confidence` for N independent standard normals $g_i$.

    It is the tolerance, in standard errors, of every Monte Carlo claim with N comparisons. If each standard error is
    itself estimated from few samples, it is the quantile of Student's t distribution at the same probability.

    Args:
      comparisons: the number N ≥ 1.
      confidence: the probability that no comparison exceeds the bound, between 0 and 1.
      samples: the number of samples, at least 2, from which each standard error is estimated; None for very many.

    Returns:
      The bound z, in standard errors.
    """
    bound = -float(ndtri((1 - confidence ** (1 / comparisons)) / 2))
    return bound if samples is None else -float(stdtrit(samples - 1, ndtr(-bound)))


def worst_deviation(samples: np.ndarray) -> float:
    """Return `max_k |mean_k| / standard error_k`, the largest deviation of a column mean from zero.

    Args:
      samples: independent rows, shape (n, k) or (n,), n ≥ 2.

    Returns:
      The largest deviation, in standard errors.
    """
    return float(np.max(np.abs(samples.mean(axis=0)) / standard_error(samples)))


def tells_apart(differences: np.ndarray, std_errors: np.ndarray, bound: float) -> bool:
    """Return whether some |difference| of two theories is more than twice `bound` standard errors of a simulation.

    A simulation that is within `bound` standard errors of the first theory is then more than `bound` away from the
    second. Otherwise it may agree with both, and its agreement with the first says nothing about the second.

    Args:
      differences: values of one theory minus those of the other, any shape.
      std_errors: standard errors of the simulated values, of the same shape.
      bound: the tolerance of the comparison, in standard errors.

    Returns:
      Whether the simulation can decide between the theories.
    """
    return bool(np.any(np.abs(differences) > 2 * bound * np.asarray(std_errors)))
