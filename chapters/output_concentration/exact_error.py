"""The exact error of Gaussian prompts, at every length that is drawn or simulated, and a bound fitted to it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.output_concentration.scene import DIMENSION
from lib.concentration import BoundShape, RadialTable, fit_bound, isotropic_error, radial_table

# Where the exact curves begin and end, and the length up to which the constants of the bound are fitted.
SHORTEST, SPLIT, LONGEST = 2, 10**6, 10**12


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
    return np.append(np.geomspace(SHORTEST, SPLIT, 10), np.geomspace(SPLIT, LONGEST, 10)[1:])


@dataclass(frozen=True)
class ErrorsByScale:
    """Of Gaussian tokens: the exact error for each σ (rows) at each length (columns)."""

    scales: Sequence[float]
    lengths: Float[np.ndarray, " n"]
    errors: Float[np.ndarray, "sigmas n"]


def by_scale(exact: ExactError, scales: Sequence[float], gain: float) -> ErrorsByScale:
    """At the lengths of exact curves, most of them longer than anything simulated."""
    lengths = dense_lengths()
    errors = np.stack([sigma**2 * exact(gain * sigma, DIMENSION, lengths) for sigma in scales])
    return ErrorsByScale(scales, lengths, errors)


def fit(exact: ErrorsByScale) -> BoundShape:
    """The form of the bound, its constants fitted to the shorter half of the exact curves."""
    short = exact.lengths <= SPLIT
    return fit_bound(exact.scales, exact.lengths[short], exact.errors[:, short])
