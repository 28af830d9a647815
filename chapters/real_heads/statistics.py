"""Statistics of every head: means over the queries of each prompt, and quantities that follow from them.

Prompts are independent repetitions, so standard errors come from resampling prompts (the bootstrap).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import jax.random as jr
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from chapters.real_heads.head_comparison import Comparison, explained_share, regression_slope
from chapters.real_heads.regimes import freezing

Heads = Float[np.ndarray, "layers heads"]
ByPrompt = Float[np.ndarray, "prompts layers heads"]

# Number of bootstrap samples: the relative error of a standard error is then 5 %.
RESAMPLES = 200


@dataclass(frozen=True)
class PromptStatistics:
    """Means over the queries of a prompt, for every prompt, layer and head; `length` is the prompt length L.

    `tau` is the standard deviation of the scores.
    """

    length: int
    tau: ByPrompt

    @property
    def arrays(self) -> dict[str, ByPrompt]:
        """All means by name."""
        return {name: array for name, array in vars(self).items() if name != "length"}

    @property
    def prompts(self) -> int:
        """Number of prompts."""
        return len(self.tau)

    def mean(self, name: str) -> Heads:
        """Return the named statistic, averaged over prompts too."""
        return self.arrays[name].mean(axis=0)

    @property
    def ratio(self) -> Heads:
        """τ̂/√(2 ln L), the spread of the scores of each head in units of freezing."""
        return self.mean("tau") / freezing(self.length)

    def resampled(self, prompts: Int[np.ndarray, " n"]) -> Self:
        """Return the statistics of these prompts, with repetitions."""
        return replace(self, **{name: array[prompts] for name, array in self.arrays.items()})


@dataclass(frozen=True)
class HeadStatistics(PromptStatistics):
    """Means over the queries of a prompt, for every prompt, layer and head; `length` is the prompt length L.

    `tau` is the standard deviation of the scores, `participation` is Σp², and `gaussian` is the mean of Σp² for
    Gaussian scores of the same standard deviations. `output`, `linear` and `product` are squares and product of the
    output and of the linear prediction, both minus the mean value; `shrunk` is (1 - P)·`linear` with the P of each
    query. `first` is the weight on the first position; `skewness` and `tails` (the excess kurtosis) describe the
    scores. `rest_…` are the same squares without the token at the first position, `gap_…` without the middle one.
    """

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
    def share(self) -> Heads:
        """The explained share R² of each head."""
        return explained_share(self._comparison(""), axis=0)

    @property
    def share_without_first(self) -> Heads:
        """R² if the first position is left out of every prompt."""
        return explained_share(self._comparison("rest_"), axis=0)

    @property
    def share_without_another(self) -> Heads:
        """R² if the middle position is left out of every prompt."""
        return explained_share(self._comparison("gap_"), axis=0)

    @property
    def slope(self) -> Heads:
        """The best slope of the outputs against the linear prediction."""
        return regression_slope(self._comparison(""), axis=0)

    @property
    def expected_slope(self) -> Heads:
        """The slope for Gaussian tokens: the mean of 1 - P over the queries, weighted by |o_lin - v̄|²."""
        return self.mean("shrunk") / self.mean("linear")

    def _comparison(self, which: str) -> Comparison:
        squares = {part: self.arrays[which + part] for part in ("output", "linear", "product")}
        return Comparison(tau=self.tau, participation=self.participation, **squares)


@dataclass(frozen=True)
class Control:
    """Statistics of every head on simulated prompts of one length.

    `ratio` is the mean τ of the queries over √(2 ln L). `participation` and `slope` are means over prompts with their
    standard errors; for Gaussian tokens one token of each prompt is averaged exactly in the former. The slope is
    against the prediction with the moments of the distribution; `expected_…` are exact for Gaussian tokens. `share` is
    R² with the moments of each prompt, as for the text.
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
        """All statistics by name."""
        return {name: value for name, value in vars(self).items() if name not in ("length", "prompts")}

    def deviations(self, participation: Heads) -> Heads:
        """Return the deviations of the simulated from this participation, in standard errors."""
        return (self.participation - participation) / self.participation_se


@dataclass(frozen=True)
class Measured:
    """A value, its bootstrap standard error, and the value of the same measurement under a different theory."""

    value: float
    std_error: float
    alternative: float


# Statistics by prompt length.
ByLength = Mapping[int, HeadStatistics]


def bootstrap(function: Callable, *statistics: PromptStatistics, key: PRNGKeyArray) -> Float[np.ndarray, "..."]:
    """Return the bootstrap standard error of `function` of statistics of the same prompts."""
    n = statistics[0].prompts
    samples = np.asarray(jr.randint(key, (RESAMPLES, n), 0, n))
    values = [function(*(original.resampled(sample) for original in statistics)) for sample in samples]
    return np.std(values, axis=0, ddof=1)


def measure(function: Callable, *statistics: PromptStatistics, alternative: float, key: PRNGKeyArray) -> Measured:
    """Return `function` of statistics of the same prompts, with its bootstrap standard error."""
    value, std_error = function(*statistics), bootstrap(function, *statistics, key=key)
    return Measured(float(value), float(std_error), float(alternative))


def columns_of(statistics: PromptStatistics) -> dict[str, np.ndarray]:
    """Return the columns of a table with one row per prompt, layer and head."""
    prompts, layers, heads = statistics.tau.shape
    indices = np.meshgrid(np.arange(prompts), np.arange(layers), np.arange(heads), indexing="ij")
    named = dict(zip(("prompt", "layer", "head"), (index.ravel() for index in indices), strict=True))
    return {"length": np.full(statistics.tau.size, statistics.length), **named} | {
        name: array.ravel() for name, array in statistics.arrays.items()
    }
