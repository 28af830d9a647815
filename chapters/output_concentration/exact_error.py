"""The exact error of Gaussian prompts, at every length that is drawn or simulated, and the tightest bound on it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.output_concentration.experiment import DIMENSION
from lib.concentration import BoundShape, RadialTable, isotropic_error, radial_table, tightest_bound
from lib.finite_prompt import score_statistics

# Where the exact curves begin and end.
SHORTEST, LONGEST = 2, 10**12


class ExactError:
    """The exact error over σ² as a function of H, d and L, at the lengths of one table of score statistics."""

    def __init__(self, table: RadialTable, lengths: Float[np.ndarray, " k"]):
        self.table, self.lengths = table, lengths

    def __call__(self, operator_norm: float, dimension: int, lengths) -> Float[np.ndarray, " l"]:
        """Only lengths of the table have an answer."""
        errors = isotropic_error(self.table, operator_norm, dimension)
        places = np.searchsorted(self.lengths, lengths)
        assert np.array_equal(self.lengths[places], lengths)
        return errors[places]


def at_lengths(*simulated: Sequence[int]) -> ExactError:
    """At the lengths of exact curves, and at those that are simulated."""
    everywhere = np.unique(np.concatenate([dense_lengths(), *simulated]))
    return ExactError(radial_table(np.log(everywhere)), everywhere)


def dense_lengths() -> Float[np.ndarray, " n"]:
    """Lengths at which exact curves are drawn."""
    return np.geomspace(SHORTEST, LONGEST, 15)


def at_one_size(operator_norm: float, dimension: int, lengths: Sequence[int]) -> Float[np.ndarray, " l"]:
    """What the error over σ² were, if all queries had the root mean square length √d."""
    scores = score_statistics(operator_norm**2 * dimension, np.log(lengths))
    return np.asarray(scores.score_error + (dimension - 1) * scores.participation)


@dataclass(frozen=True)
class ErrorsByScale:
    """Of Gaussian tokens: the exact error for each σ (rows) at each length (columns)."""

    scales: Sequence[float]
    gain: float
    lengths: Float[np.ndarray, " n"]
    errors: Float[np.ndarray, "sigmas n"]


def by_scale(exact: ExactError, scales: Sequence[float], gain: float) -> ErrorsByScale:
    """At the lengths of exact curves, most of them longer than anything simulated."""
    lengths = dense_lengths()
    errors = np.stack([sigma**2 * exact(gain * sigma, DIMENSION, lengths) for sigma in scales])
    return ErrorsByScale(scales, gain, lengths, errors)


def tightest(exact: ErrorsByScale) -> BoundShape:
    """The form of the bound, its constants as tight as one pair for all exact curves can be."""
    return tightest_bound(exact.scales, exact.lengths, exact.errors)
