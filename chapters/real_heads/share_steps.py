"""The loss of R² from Gaussian tokens to prompts of the text, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.statistics import Control, Heads, HeadStatistics, Measured, bootstrap, measure


@dataclass(frozen=True)
class ShareSteps:
    """Explained shares of all heads in several settings, by name, and what separates them at small spread.

    `independent` is the part of the loss from Gaussian tokens to prompts that occurs on independent tokens of the text;
    its alternative takes other Gaussian tokens in their place. `gain` is the gain of R² if the first position is left
    out; its alternative leaves out the middle position. `position` is the weight on the first position without special
    tokens over the weight with them; its alternative is an equal weight on all positions.
    """

    arrays: Mapping[str, Heads]
    independent: Measured
    gain: Measured
    position: Measured


def solve_share_steps(
    heads: HeadStatistics,
    shuffled: HeadStatistics,
    bare: HeadStatistics,
    *,
    gaussian: Control,
    again: Control,
    independent: Control,
    key: PRNGKeyArray,
) -> ShareSteps:
    """Separate the loss of R² from Gaussian tokens to prompts of the text into steps."""
    linear = heads.ratio < LINEAR

    def mean(share: Heads) -> float:
        return float(np.mean(share[linear]))

    top = mean(gaussian.share)

    def part_of_loss(statistics: HeadStatistics, step: Control = independent) -> float:
        return (top - mean(step.share)) / (top - mean(statistics.share))

    def gain(statistics: HeadStatistics) -> float:
        return mean(statistics.share_without_first - statistics.share)

    def position(statistics: HeadStatistics, without: HeadStatistics) -> float:
        return without.mean("first").mean() / statistics.mean("first").mean()

    arrays = {
        "ratio": heads.ratio,
        "gaussian": gaussian.share,
        "independent": independent.share,
        "text": heads.share,
        "text_se": bootstrap(lambda sample: sample.share, heads, key=key),
        "without_first": heads.share_without_first,
        "shuffled": shuffled.share,
        "bare": bare.share,
        "first": heads.mean("first"),
        "first_bare": bare.mean("first"),
        "skewness": heads.mean("skewness"),
        "tails": heads.mean("tails"),
    }
    other_gain, equal_weight = mean(heads.share_without_another - heads.share), 1 / heads.length
    return ShareSteps(
        arrays=arrays,
        independent=measure(part_of_loss, heads, alternative=part_of_loss(heads, again), key=key),
        gain=measure(gain, heads, alternative=other_gain, key=key),
        position=measure(position, heads, bare, alternative=equal_weight / heads.mean("first").mean(), key=key),
    )
