"""The even parts of the heads on the text, compared with those on Gaussian tokens."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.stats import spearmanr

from chapters.real_heads.encoder import HEADS, LAYERS
from chapters.real_heads.even_parts import EvenParts
from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.statistics import Heads, Measured, bootstrap, measure

# Largest spread of scores τ̂ at which an expansion in the scores is compared with the even part.
SMALL = 1.0


@dataclass(frozen=True)
class EvenComparison:
    """Standard errors by name for all heads, and five numbers on the even parts.

    `gain` is the mean gain from centring over heads of small spread; its alternative subtracts the plain average
    of the next prompt. `share` is the mean share of the even part over these heads, relative to the Gaussian tokens;
    its alternative is that over frozen heads. `variation` is the mean square of their plain averages, relative to
    independent tokens; its alternative is the expectation for independent tokens. `ranks` is the rank correlation of
    gain and spread; its alternative is that of gain and number of the layer. `second` is the mean share of the
    second-order term in the rest of the even part over heads with a spread below `SMALL`; its alternative is that over
    frozen heads.
    """

    errors: dict[str, Heads]
    gain: Measured
    share: Measured
    variation: Measured
    ranks: Measured
    second: Measured


def solve_even_comparison(parts: EvenParts, *, key: PRNGKeyArray) -> EvenComparison:
    """Compare the even parts on the text with those on Gaussian tokens."""
    linear, frozen, small = parts.ratio < LINEAR, parts.ratio >= FROZEN, parts.mean("tau") < SMALL
    layers = np.repeat(np.arange(LAYERS), HEADS)

    def share(sample: EvenParts, heads=linear) -> float:
        return np.mean(sample.share[heads]) / np.mean(sample.gaussian_share[heads])

    def ranks(sample: EvenParts) -> float:
        return spearmanr(sample.ratio.ravel(), sample.gain.ravel()).statistic

    def second(sample: EvenParts, heads=small) -> float:
        return np.mean(sample.second_share[heads])

    # the constant, a mean over the other prompts, adds its own variance to that of the plain average
    independent = parts.prompts / (parts.prompts - 1)
    of_layers, of_other = spearmanr(layers, parts.gain.ravel()).statistic, np.mean(parts.gain_of_other[linear])
    measured = partial(measure, key=key)
    return EvenComparison(
        errors={
            name: bootstrap(lambda sample, name=name: getattr(sample, name), parts, key=key)
            for name in ("share", "gain", "variation", "second_share")
        },
        gain=measured(lambda sample: np.mean(sample.gain[linear]), parts, alternative=of_other),
        share=measured(share, parts, alternative=share(parts, frozen)),
        variation=measured(lambda sample: np.mean(sample.variation[linear]), parts, alternative=independent),
        ranks=measured(ranks, parts, alternative=of_layers),
        second=measured(second, parts, alternative=second(parts, frozen)),
    )
