"""The explained shares R² of the heads at all lengths, and their dependence on spread and length."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.stats import spearmanr

from chapters.real_heads.encoder import LAYERS
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import ByLength, Heads, HeadStatistics, Measured, bootstrap, measure


@dataclass(frozen=True)
class Shares:
    """Errors of R² for every head and length, and its dependence on spread and length.

    `ranks` is the rank correlation of R² with τ̂/√(2 ln L); its alternative is that with the number of the layer. `unit`
    is by how much this correlation, with the heads at all lengths in one sample, is nearer to -1 than that with τ̂; its
    alternative is the same difference if R² were a function of τ̂ alone. `unit_over_heads` is its standard error over
    heads. `growth` is the mean change of R² from the shortest to the longest prompts over heads of small spread; its
    alternative is the mean change over frozen heads.
    """

    errors: dict[int, Heads]
    ranks: Measured
    unit: Measured
    unit_over_heads: float
    growth: Measured


def solve_shares(heads: ByLength, *, key: PRNGKeyArray) -> Shares:
    """Compare the explained shares of the heads at all lengths."""
    shortest, longest = heads[min(heads)], heads[max(heads)]
    linear, frozen = longest.ratio < LINEAR, longest.ratio >= FROZEN
    layers = np.repeat(np.arange(LAYERS), linear.shape[1])
    pooled = tuple(heads.values())
    plain, in_units, _ = _pool(*pooled)

    def ranks(statistics: HeadStatistics) -> float:
        return spearmanr(statistics.ratio.ravel(), statistics.share.ravel()).statistic

    def growth(short: HeadStatistics, long: HeadStatistics, chosen=linear) -> float:
        return np.mean((long.share - short.share)[chosen])

    by_layer = spearmanr(layers, longest.share.ravel()).statistic
    by_plain = spearmanr(in_units.ravel(), plain.ravel()).statistic - 1
    return Shares(
        errors={
            length: bootstrap(lambda sample: sample.share, statistics, key=key) for length, statistics in heads.items()
        },
        ranks=measure(ranks, longest, alternative=by_layer, key=key),
        unit=measure(_gain_of_unit, *pooled, alternative=by_plain, key=key),
        unit_over_heads=_error_over_heads(*pooled),
        growth=measure(growth, shortest, longest, alternative=growth(shortest, longest, frozen), key=key),
    )


def _pool(*statistics: HeadStatistics) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return τ̂, τ̂/√(2 ln L) and R² of every head, with one row per length."""
    columns = ([each.mean("tau"), each.ratio, each.share] for each in statistics)
    plain, in_units, shares = (np.stack([np.ravel(part) for part in parts]) for parts in zip(*columns, strict=True))
    return plain, in_units, shares


def _gain(plain: np.ndarray, in_units: np.ndarray, shares: np.ndarray) -> float:
    """Return the rank correlation of R² with τ̂ minus that with τ̂/√(2 ln L)."""
    by_plain, by_unit = (spearmanr(spread.ravel(), shares.ravel()).statistic for spread in (plain, in_units))
    return float(by_plain - by_unit)


def _gain_of_unit(*statistics: HeadStatistics) -> float:
    return _gain(*_pool(*statistics))


def _error_over_heads(*statistics: HeadStatistics) -> float:
    """Return the jackknife standard error of the gain over heads, each of which is left out at all lengths."""
    columns = _pool(*statistics)
    n = columns[0].shape[1]
    without = [_gain(*(np.delete(column, head, axis=1) for column in columns)) for head in range(n)]
    return float(np.sqrt((n - 1) * np.var(without)))
