"""Exact error of Gaussian prompts at the lengths that are drawn or simulated, and the tightest bound on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.concentration.bounds import BoundShape, tightest_bound
from chapters.concentration.experiment import DIMENSION
from lib.concentration import RadialTable
from lib.finite_prompt import score_statistics

# Shortest and longest prompt of the exact curves.
SHORTEST, LONGEST = 2, 10**12


class ExactError:
    """The exact error over σ² as a function of H, d and L, at the lengths of one table of score statistics."""

    def __init__(self, table: RadialTable, lengths: Float[np.ndarray, " k"]):
        self.table, self.lengths = table, lengths

    def __call__(self, operator_norm: float, dimension: int, lengths) -> Float[np.ndarray, " l"]:
        """Return the error at `lengths`, which must be in the table."""
        errors = self.table.error(operator_norm, dimension)
        indices = np.searchsorted(self.lengths, lengths)
        assert np.array_equal(self.lengths[indices], lengths)
        return errors[indices]


def solve_exact_error(*simulated: Sequence[int]) -> ExactError:
    """Return the exact error at the lengths of the exact curves and at the simulated lengths."""
    lengths = np.unique(np.concatenate([dense_lengths(), *simulated]))
    return ExactError(RadialTable.at(np.log(lengths)), lengths)


def dense_lengths() -> Float[np.ndarray, " n"]:
    """Return the lengths at which exact curves are drawn."""
    return np.geomspace(SHORTEST, LONGEST, 15)


def errors_at_one_size(operator_norm: float, dimension: int, lengths: Sequence[int]) -> Float[np.ndarray, " l"]:
    """Return the error over σ² if all queries had the root mean square length √d."""
    scores = score_statistics(operator_norm**2 * dimension, np.log(lengths))
    return np.asarray(scores.score_error + (dimension - 1) * scores.participation)


@dataclass(frozen=True)
class ErrorsByScale:
    """Exact error for Gaussian tokens: one row per σ, one column per length."""

    scales: Sequence[float]
    gain: float
    lengths: Float[np.ndarray, " n"]
    errors: Float[np.ndarray, "sigmas n"]


def solve_errors_by_scale(exact: ExactError, scales: Sequence[float], gain: float) -> ErrorsByScale:
    """Return the errors at the lengths of the exact curves, most of them longer than any simulated prompt."""
    lengths = dense_lengths()
    errors = np.stack([sigma**2 * exact(gain * sigma, DIMENSION, lengths) for sigma in scales])
    return ErrorsByScale(scales, gain, lengths, errors)


def solve_best_bound(exact: ErrorsByScale) -> BoundShape:
    """Return the form of the bound with the tightest pair of constants for all exact curves."""
    return tightest_bound(exact.scales, exact.lengths, exact.errors)
