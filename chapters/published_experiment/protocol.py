"""The published protocol: its two data laws, its two heads, how long it trains.

All risks of this chapter are plain mean squares, label noise included, as in the published code.
"""

from typing import NamedTuple

import jax.random as jr
from jaxtyping import PRNGKeyArray

from lib.icl import linear_pool, published_task, softmax_pool

LAWS = {"corrected": False, "as published": True}
POOLS = {"softmax": softmax_pool, "linear": linear_pool}
# Width of the published model's matrices, and its steps and their size, whose product is its training time.
WIDTH, PUBLISHED_STEPS, PUBLISHED_STEP_SIZE = 6, 300_000, 1e-3
# How far above the optimum a run may end that has found it.
CLOSE = 0.03


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    runs: PRNGKeyArray
    bayes: PRNGKeyArray
    starts: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


def law_of(covariance_bug: bool) -> str:
    """The data law, by its name."""
    return "as published" if covariance_bug else "corrected"


def noise_power() -> float:
    """Variance of the label noise, the least mean square of an infinite prompt."""
    return float(published_task().noise_std) ** 2
