"""Numbers of heads of small spread, frozen, and between."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.real_heads.encoder import HEAD_WIDTH
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import HeadStatistics, Measured, measure


@dataclass(frozen=True)
class Regimes:
    """Numbers of heads of small spread, frozen, and between.

    The alternatives are the numbers for scores without the factor 1/√32 of the network.
    """

    linear: Measured
    frozen: Measured
    between: int

    @property
    def heads(self) -> int:
        """Number of heads in all regimes."""
        return int(self.linear.value + self.frozen.value) + self.between


def solve_regimes(heads: HeadStatistics, *, key: PRNGKeyArray) -> Regimes:
    """Count the heads of small spread and the frozen heads."""
    between = int(np.sum((heads.ratio >= LINEAR) & (heads.ratio < FROZEN)))
    return Regimes(_count(heads, np.less, LINEAR, key=key), _count(heads, np.greater_equal, FROZEN, key=key), between)


def _count(heads: HeadStatistics, compare: Callable, bound: float, *, key: PRNGKeyArray) -> Measured:
    """Count the heads whose spread compares with the bound; the alternative is without the factor 1/√32."""
    unscaled = compare(heads.ratio * np.sqrt(HEAD_WIDTH), bound).sum()
    return measure(lambda sample: compare(sample.ratio, bound).sum(), heads, alternative=unscaled, key=key)
