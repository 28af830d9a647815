"""What is kept of every head: means over the queries of a prompt, and what follows from them for the head.

The prompts are what repeats, so errors come from drawing prompts again (the bootstrap).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import jax.random as jr
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from lib.heads import Comparison, explained_share, regression_slope

Heads = Float[np.ndarray, "layers heads"]
ByPrompt = Float[np.ndarray, "prompts layers heads"]

# Of the bootstrap: the error of an error bar is then 5 %.
RESAMPLES = 200


@dataclass(frozen=True)
class HeadStatistics:
    """Of every prompt, layer and head, means over its queries; `length` is L.

    `tau` is the standard deviation of the scores, `participation` Σp², `gaussian` what Σp² is in the mean for Gaussian
    scores of the same standard deviations; `output`, `linear`, `product` are squares and product of the output and of
    the linear prediction, less the mean value; `shrunk` is (1 - P)·`linear` with the P of each query. `first` is the
    weight on the first place, `skewness` and `tails` (the excess kurtosis) are the scores'. `rest_…` are the same
    squares when the first place is left out of the prompt, `gap_…` when the one in the middle is.
    """

    length: int
    tau: ByPrompt
    participation: ByPrompt
    gaussian: ByPrompt
    output: ByPrompt
    linear: ByPrompt
    product: ByPrompt
    shrunk: ByPrompt
    first: ByPrompt
    skewness: ByPrompt
    tails: ByPrompt
    rest_output: ByPrompt
    rest_linear: ByPrompt
    rest_product: ByPrompt
    gap_output: ByPrompt
    gap_linear: ByPrompt
    gap_product: ByPrompt

    @property
    def arrays(self) -> dict[str, ByPrompt]:
        """The means by name."""
        return {name: array for name, array in vars(self).items() if name != "length"}

    @property
    def prompts(self) -> int:
        """How many prompts there are."""
        return len(self.tau)

    def mean(self, name: str) -> Heads:
        """One of the means, over the prompts too."""
        return self.arrays[name].mean(axis=0)

    @property
    def ratio(self) -> Heads:
        """τ̂/√(2 ln L): the spread of a head's scores in units of freezing."""
        return self.mean("tau") / freezing(self.length)

    @property
    def share(self) -> Heads:
        """The explained share R²."""
        return np.asarray(explained_share(self._comparison(""), axis=0))

    @property
    def share_without_first(self) -> Heads:
        """The same with the first place left out of every prompt."""
        return np.asarray(explained_share(self._comparison("rest_"), axis=0))

    @property
    def share_without_another(self) -> Heads:
        """The same with the place in the middle left out instead."""
        return np.asarray(explained_share(self._comparison("gap_"), axis=0))

    @property
    def slope(self) -> Heads:
        """The best slope a."""
        return np.asarray(regression_slope(self._comparison(""), axis=0))

    @property
    def expected_slope(self) -> Heads:
        """What the slope would be of Gaussian tokens: the mean of 1 - P over the queries, weighted by |o_lin - v̄|²."""
        return self.mean("shrunk") / self.mean("linear")

    def _comparison(self, which: str) -> Comparison:
        squares = {part: self.arrays[which + part] for part in ("output", "linear", "product")}
        return Comparison(tau=self.tau, participation=self.participation, **squares)

    def resampled(self, prompts: Int[np.ndarray, " n"]) -> "HeadStatistics":
        """These prompts in place of all."""
        return replace(self, **{name: array[prompts] for name, array in self.arrays.items()})


@dataclass(frozen=True)
class Control:
    """Of every head, on drawn prompts of one length.

    `ratio` is the mean τ of its queries over √(2 ln L). `participation` and `slope` are means over prompts with their
    standard errors; of Gaussian tokens one is averaged exactly for the former. The slope is that against the prediction
    with the law's own moments; `expected_…` are exact for Gaussian tokens. `share` is R² with each prompt's own
    moments, as it is measured on the text.
    """

    length: int
    ratio: Heads
    participation: Heads
    participation_se: Heads
    expected_participation: Heads
    slope: Heads
    slope_se: Heads
    expected_slope: Heads
    share: Heads
    prompts: int

    @property
    def arrays(self) -> dict[str, Heads]:
        """What there is of every head, by name."""
        return {name: value for name, value in vars(self).items() if name not in ("length", "prompts")}


@dataclass(frozen=True)
class Measured:
    """A number, its standard error over prompts drawn again, and what the same measurement gives for something else."""

    value: float
    std_error: float
    other: float


# By length, and for the controls by what was done to the prompts.
ByLength = Mapping[int, HeadStatistics]


def freezing(length: int) -> float:
    """√(2 ln L), the size of scores at which softmax freezes."""
    return float(np.sqrt(2.0 * np.log(length)))


def bootstrap(function: Callable, *statistics: HeadStatistics, key: PRNGKeyArray) -> Float[np.ndarray, "..."]:
    """The standard error of `function` of statistics of the same prompts: prompts drawn again, with replacement."""
    n = statistics[0].prompts
    draws = np.asarray(jr.randint(key, (RESAMPLES, n), 0, n))
    return np.std([function(*(these.resampled(draw) for these in statistics)) for draw in draws], axis=0, ddof=1)


def columns_of(statistics: HeadStatistics) -> dict[str, np.ndarray]:
    """A row a prompt, layer and head, for a table."""
    prompts, layers, heads = statistics.tau.shape
    places = np.meshgrid(np.arange(prompts), np.arange(layers), np.arange(heads), indexing="ij")
    named = dict(zip(("prompt", "layer", "head"), (place.ravel() for place in places), strict=True))
    return {"length": np.full(statistics.tau.size, statistics.length), **named} | {
        name: array.ravel() for name, array in statistics.arrays.items()
    }
