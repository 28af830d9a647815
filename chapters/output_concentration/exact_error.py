"""The exact error of Gaussian prompts, at every length that the chapter draws or simulates."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from lib.concentration import ScoreTable, isotropic_error, score_table

# Where the exact curves begin and end, and the length up to which the constants of the bound are fitted.
SHORTEST, SPLIT, LONGEST = 2, 10**6, 10**12


class Theory:
    """The exact error over σ² as a function of H, d and L, at the lengths of one table of score statistics."""

    def __init__(self, table: ScoreTable, lengths: Float[np.ndarray, " k"]):
        self.table, self.lengths = table, lengths

    def __call__(self, operator_norm: float, dimension: int, lengths) -> Float[np.ndarray, " l"]:
        """Only lengths of the table have an answer."""
        errors = isotropic_error(self.table, operator_norm, dimension)
        places = np.searchsorted(self.lengths, lengths)
        assert np.array_equal(self.lengths[places], lengths)
        return errors[places]


def at_lengths(*simulated: Sequence[int]) -> Theory:
    """The theory at the lengths of exact curves, and at those that are simulated."""
    everywhere = np.unique(np.concatenate([dense_lengths(), *simulated]))
    return Theory(score_table(np.log(everywhere)), everywhere)


def dense_lengths() -> Float[np.ndarray, " n"]:
    """Lengths at which exact curves are drawn."""
    return np.append(np.geomspace(SHORTEST, SPLIT, 10), np.geomspace(SPLIT, LONGEST, 10)[1:])
