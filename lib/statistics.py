"""Error bars: of a mean, of a limit, and of the largest among many comparisons.

All functions take and return NumPy arrays and Python numbers, and compute in float64.
"""

import numpy as np

__all__ = [
    "comparison_quantile",
    "extrapolate_to_infinite_size",
    "standard_error",
    "student_quantile",
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


def comparison_quantile(comparisons: int, confidence: float = 0.999) -> float:
    """Return z with `P(max |g_i| ≤ z) = confidence` for N independent standard normals $g_i$.

    It is the tolerance, in standard errors, of every Monte Carlo claim with N comparisons.

    Args:
      comparisons: the number N ≥ 1.
      confidence: the probability that no comparison exceeds the bound, between 0 and 1.

    Returns:
      The bound z, in standard errors.
    """
    from scipy.stats import norm  # scipy.stats takes a second to import, and most users need no claim

    return float(norm.isf((1 - confidence ** (1 / comparisons)) / 2))


def student_quantile(comparisons: int, samples: int) -> float:
    """Return the bound of `comparison_quantile` for standard errors that are estimated from few samples.

    It is the quantile of Student's t distribution at the same probability, so that it tends to `comparison_quantile` as
    the number of samples grows.

    Args:
      comparisons: the number of comparisons, at least 1.
      samples: the number of samples from which each standard error is estimated, at least 2.

    Returns:
      The bound in estimated standard errors, at confidence 0.999.
    """
    from scipy.stats import norm, t

    return float(t.isf(norm.sf(comparison_quantile(comparisons)), samples - 1))


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


def extrapolate_to_infinite_size(size: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Extrapolate single runs to infinite size by a straight line in 1/size; return the limit and its standard error.

    The line is fitted by least squares to runs whose variance falls like 1/size.

    Args:
      size: the size of each run, for example its dimension, shape (n,), n ≥ 3, at least two different sizes.
      values: the result of each run, shape (n,).

    Returns:
      The limit, and its standard error from the scatter of the runs about the line.
    """
    design = np.stack([np.ones_like(size), size.mean() / size], axis=1) * np.sqrt(size)[:, None]
    target = values * np.sqrt(size)
    inverse = np.linalg.inv(design.T @ design)
    line = inverse @ design.T @ target
    variance = np.sum((target - design @ line) ** 2) / (len(size) - 2)
    return float(line[0]), float(np.sqrt(variance * inverse[0, 0]))
