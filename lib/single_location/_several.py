"""Quadratures in NumPy for prompts with one, none, or several relevant tokens: what `several_tokens` computes.

A relevant token has a score N(√ν, 1), another one N(0, 1). With `φ = E exp(-e^u)`, `a = E[e^u exp(-e^u)]`,
`b = E[e^{2u} exp(-e^u)]` of `lib.partition`, u = y + κg, a relevant token under the slope κ has `φ(y + κ√ν)`, so that
one table serves both kinds. A sink of score s multiplies every integrand by `exp(-e^{y+s})`. Derived here, see
book/several_relevant_tokens.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.interpolate
import scipy.special

from lib._namespace import logsumexp
from lib.partition import Resolution, _bracket, log_survival, log_tilted
from lib.single_location._posterior import SMALLEST_SPREAD, log_trapezoid, window
from lib.single_location._search import between_neighbours
from lib.statistics import standard_error


class _Nodes(NamedTuple):
    """Nodes of the one-token expectations, and the step in y."""

    resolution: Resolution
    step: float


# For a place to a part in a thousand, for a place, and for a value.
_SCAN, _SEARCH, _VALUE = (
    _Nodes(Resolution(step=0.6, reach=6.0), 0.7),
    _Nodes(Resolution(step=0.4, reach=7.5), 0.35),
    _Nodes(Resolution(step=0.25, reach=8.5), 0.25),
)
# Natural logarithms that an integrand falls before it is cut, and how far `E Σ s = 1` may be missed.
_LOG_DROP, MASS_TOLERANCE = 42.0, 1e-8
# Ratio of neighbouring slopes of a search, distance of neighbouring sinks, and the steepest slope.
_SLOPE_RATIO, _SINK_STEP, _STEEPEST = 1.4, 1.0, 60.0
# Number of tables of expectations that are kept, and number of levels by which they grow.
_TABLES, _CHUNK = 8192, 24
# A step of the Bayes integrals that resolves the sink's factor, and how far they fall.
_BAYES_STEP = 0.2
# Where the factor of a sink ends: exp(-e^7) is 0.
_SINK_CUT = 7.0
# Nodes of the interpolated one-token average of a simulation, and random numbers drawn at once.
_TABLE_NODES, _BLOCK = 2000, 2**18


class SoftmaxMoments(NamedTuple):
    """Averages of the weights of a softmax, divided by the mean number of relevant tokens.

    Attributes:
      hidden: `E Σ_A s / E|A|`.
      power: `E Σ s² / E|A|`.
      mass: `E Σ s / E|A|` without a sink.
    """

    hidden: float
    power: float
    mass: float

    @property
    def risk(self) -> float:
        """Risk with the best length of v."""
        return 1.0 - self.hidden**2 / self.power


class BestSoftmax(NamedTuple):
    """The best softmax of a task.

    Attributes:
      risk: its risk.
      slope: slope of the scores.
      sink: score of the sink, -∞ where none is best.
      mass: `E Σ s / E|A|` of its weights without the sink, a check of the quadrature.
    """

    risk: float
    slope: float
    sink: float
    mass: float


class Law(NamedTuple):
    """What a softmax needs to know of the random set of relevant tokens.

    Attributes:
      log_others: from `log φ` of another and of a relevant token the logarithms of what multiplies the expectation of a
        relevant token, and of another one.
      number: mean number of relevant tokens.
      never_empty: whether there is always a relevant token.
    """

    log_others: Callable
    number: float
    never_empty: bool


class _Table(NamedTuple):
    """Log-integrands at the nodes y for one slope, before the sink's factor."""

    y: np.ndarray
    hidden: np.ndarray
    power: np.ndarray
    mass: np.ndarray

    def moments(self, sink: float) -> SoftmaxMoments:
        with np.errstate(over="ignore"):
            factor = -np.exp(self.y + sink)
        step = self.y[1] - self.y[0]
        hidden, power = (step * np.exp(part + factor).sum() for part in (self.hidden, self.power))
        return SoftmaxMoments(hidden, power, step * np.exp(self.mass).sum())


def elementwise_bayes_risk(probability: float, snr: float) -> float:
    """Return `E sigmoid(-u)`, u ~ N(ν/2 + ln(q/(1-q)), ν): the least risk of weights that read their own score only.

    At q = 1/L it is that of `best_elementwise_risk`, which is mapped and differentiated and so has fixed nodes.

    Args:
      probability: probability q that a token is relevant, 0 < q ≤ 1.
      snr: signal strength ν.
    """
    if probability == 1.0 or snr == 0.0:
        return 1.0 - probability
    mean, root = 0.5 * snr + math.log(probability) - math.log1p(-probability), math.sqrt(snr)
    step, reach = min(0.35, root / 2.5), 9.0 * root + 1.0
    u = np.arange(mean - snr - reach, mean + reach, step)
    log_terms = -np.logaddexp(0.0, u) - 0.5 * ((u - mean) / root) ** 2
    return float(math.exp(logsumexp(log_terms) + math.log(step / root) - 0.5 * math.log(2 * math.pi)))


def absent_bayes_risk(length: float, snr: float, present: float) -> float:
    """Return the Bayes risk of at most one relevant token, which is there with probability π.

    `(L(1-π)/π) ∫ k a φ^{L-1} dy + (L-1) e^{-ν/2} ∫ e^{-y} k a² φ^{L-2} dy` with the sink's factor k; the expectation
    of the relevant token is a tilted one of another token, so that none is in a far tail. At π = 1 the second
    integral is that of `spiked_bayes_risk`, which is mapped and differentiated.

    Args:
      length: number L of tokens.
      snr: signal strength ν > 0.
      present: probability π, 0 < π ≤ 1.
    """
    tau = max(math.sqrt(snr), SMALLEST_SPREAD)
    absent = -math.inf if present == 1.0 else math.log(length) + math.log1p(-present) - math.log(present)
    low, high = window(length, tau, snr)
    high = min(high, _SINK_CUT - absent - 0.5 * snr)

    def log_token_and_others(y: np.ndarray, tokens: float, resolution: Resolution) -> tuple[Any, Any]:
        factor = -np.exp(y + absent + 0.5 * snr)
        others = (length - tokens) * log_survival(y, tau, resolution=resolution)
        return log_tilted(1, y, tau, resolution=resolution), others + factor

    def without(y: np.ndarray, resolution: Resolution) -> np.ndarray:
        token, others = log_token_and_others(y, 1.0, resolution)
        return token + others

    def mistaken(y: np.ndarray, resolution: Resolution) -> np.ndarray:
        token, others = log_token_and_others(y, 2.0, resolution)
        return 2.0 * token - y + others

    def log_integral(log_integrand: Callable) -> Any:
        return log_trapezoid(log_integrand, low, high, scans=3, step=_BAYES_STEP)

    parts = []
    if present < 1.0:
        parts.append(absent + log_integral(without))
    if length > 1.0:
        parts.append(math.log(length - 1.0) - 0.5 * snr + log_integral(mistaken))
    return float(math.exp(np.logaddexp.reduce(parts))) if parts else 0.0


def softmax_moments(law: Law, log_length: float, mean: float, slope: float, sink: float = -math.inf) -> SoftmaxMoments:
    """Return the moments of `e^{χ}/(e^{sink} + Σ e^{χ})`; the scores are N(mean, slope²) and N(0, slope²).

    `normalised_moments` does this for one relevant token and any kernel, mapped and differentiated.

    Args:
      law: distribution of the relevant tokens.
      log_length: ln L.
      mean: mean of the score of a relevant token.
      slope: standard deviation of the scores.
      sink: score of the sink; -∞ is none.
    """
    slope = max(slope, 1e-6)
    limit = sink if sink > -math.inf else None
    return _table(law, log_length, mean, slope, _VALUE, sink=limit).moments(sink)


def _table(
    law: Law, log_length: float, mean: float, slope: float, nodes: _Nodes, *, sink: float | None = None
) -> _Table:
    """Return the table for a slope; with a sink it reaches farther left, to where it bounds the weights."""
    largest = max(mean, 0.0) + 6.0 * slope + math.log1p(law.number)
    low = -max(log_length + 0.5 * slope**2, largest) - 12.0 * slope - _LOG_DROP
    # where there may be no relevant token, the others alone decide the sum
    high = -max(log_length, mean - 14.0 * slope if law.never_empty else -math.inf) + 9.0 + 6.0 * slope
    rough = _fill(law, (low, high), mean, slope, _SCAN._replace(step=max(1.0, slope / 3.0)))
    first, last = _bracket(rough.mass, _LOG_DROP)
    low, high = (float(rough.y[place]) for place in (max(first - 1, 0), min(last + 1, rough.y.size - 1)))
    if sink is not None:
        low = min(low, -sink) - _LOG_DROP
    return _fill(law, (low, high), mean, slope, nodes)


def _fill(law: Law, ends: tuple[float, float], mean: float, slope: float, nodes: _Nodes) -> _Table:
    """Return the table between two levels."""
    low, high = ends
    if 0.5 * nodes.step < abs(mean) < high - low:
        # the relevant token's values are those of another one, `ahead` nodes to the right
        ahead = math.ceil(abs(mean) / nodes.step)
        step = abs(mean) / ahead
        first, last = math.floor(low / step), math.ceil(high / step)
        both = _expectations(slope, step, 0.0, nodes).between(first - ahead * (mean < 0), last + ahead * (mean > 0))
        absent, present = (both[:, :-ahead], both[:, ahead:])[:: 1 if mean > 0 else -1]
    else:
        step = nodes.step
        first, last = math.floor(low / step), math.ceil(high / step)
        absent, present = (_expectations(slope, step, shift, nodes).between(first, last) for shift in (0.0, mean))
    of_relevant, of_other = law.log_others(absent[0], present[0])
    hidden = present[1] + of_relevant
    power = np.logaddexp(present[2] + of_relevant, absent[2] + of_other)
    return _Table(step * np.arange(first, last + 1), hidden, power, np.logaddexp(hidden, absent[1] + of_other))


class _Expectations:
    """`log φ`, `log a` and `log b` for one slope at the levels `shift + n step`, each computed when first needed.

    They do not depend on the law, so that tasks with the same signal strength share them.
    """

    def __init__(self, slope: float, step: float, shift: float, resolution: Resolution):
        """Begin without levels."""
        self._slope, self._step, self._shift, self._resolution = slope, step, shift, resolution
        self._first, self._logs = 0, np.empty((3, 0))

    def between(self, first: int, last: int) -> np.ndarray:
        """Return the three logarithms at the levels from number `first` to number `last`, one per row."""
        if not self._logs.size:
            self._first = first
        end = self._first + self._logs.shape[1]
        before, after = (
            max(0, _CHUNK * math.ceil(missing / _CHUNK)) for missing in (self._first - first, last + 1 - end)
        )
        if before or after:
            self._first -= before
            logs = self._compute(np.r_[self._first : self._first + before, end : end + after])
            self._logs = np.concatenate([logs[:, :before], self._logs, logs[:, before:]], axis=1)
        return self._logs[:, first - self._first : last + 1 - self._first]

    def _compute(self, numbers: np.ndarray) -> np.ndarray:
        y, options = self._shift + self._step * numbers, {"resolution": self._resolution}
        with np.errstate(all="ignore"):
            survival: Any = log_survival(y, self._slope, **options)
            return np.stack([survival, *(log_tilted(power, y, self._slope, **options) for power in (1, 2))])


@functools.lru_cache(_TABLES)
def _expectations(slope: float, step: float, shift: float, nodes: _Nodes) -> _Expectations:
    return _Expectations(slope, step, shift, nodes.resolution)


def best_softmax(law: Law, log_length: float, snr: float, *, with_sink: bool) -> BestSoftmax:
    """Return the lowest risk over the slope, and over the sink where there is one, with the slope and the sink.

    A lattice over the logarithm of the slope finds the valley, because there may be several.

    Args:
      law: distribution of the relevant tokens.
      log_length: ln L.
      snr: signal strength ν > 0.
      with_sink: whether there is a sink, whose score is searched, too.

    """
    root = math.sqrt(snr)
    low, high = math.log(0.2 * min(root, 1.0 / root)), math.log(min(2.0 * root, _STEEPEST))

    def best_sink(table: _Table) -> tuple[float, float]:
        none = table.moments(-math.inf).risk
        if not with_sink:
            return none, -math.inf
        sinks = np.arange(-table.y[-1], -table.y[0] - _LOG_DROP, _SINK_STEP)
        risks = [table.moments(sink).risk for sink in sinks]
        sink, risk = between_neighbours(lambda sink: table.moments(sink).risk, sinks, risks, accuracy=1e-4)
        return (risk, sink) if risk < none else (none, -math.inf)

    lattice = np.linspace(low, high, 2 + math.ceil((high - low) / math.log(_SLOPE_RATIO)))
    limit = -math.inf if with_sink else None
    tables = [_table(law, log_length, slope * root, slope, _SCAN, sink=limit) for slope in np.exp(lattice).tolist()]
    risks = [best_sink(table)[0] for table in tables]
    place = int(np.nanargmin(risks))
    before, after = max(place - 1, 0), min(place + 1, lattice.size - 1)
    levels = np.concatenate([table.y for table in tables[before : after + 1]])

    def at(log_slope: float) -> tuple[float, float]:
        slope = math.exp(log_slope)
        return best_sink(_fill(law, (levels.min(), levels.max()), slope * root, slope, _SEARCH))

    log_slope, risk = between_neighbours(lambda log_slope: at(log_slope)[0], lattice, risks, accuracy=1e-4)
    log_slope = log_slope if risk < at(lattice[place])[0] else lattice[place]
    slope, sink = math.exp(log_slope), at(log_slope)[1]
    moments = softmax_moments(law, log_length, slope * root, slope, sink)
    return BestSoftmax(moments.risk, slope, sink, moments.mass)


def simulate_odds(
    relevant: int, others: int, snr: float, prompts: int, rng: np.random.Generator, *, absent: float = 0.0
) -> tuple[float, float]:
    """Return the mean and its standard error of `ψ(F)` over prompts, F the odds against one more relevant token.

    F is `e_r/e_{r-1}`, the ratio of elementary symmetric polynomials of the weights `e^{√ν χ}` of all tokens but one,
    r - 1 of which are relevant; `ψ(F) = E 1/(1 + e^{ν + √ν g}/F)`. Weights are divided by `e^{ν/2}`.

    Args:
      relevant: number r of relevant tokens, the one more included.
      others: number of the other tokens.
      snr: signal strength ν > 0.
      prompts: number of prompts.
      rng: generator of random numbers.
      absent: weight of a sink, after the division; only with r = 1.
    """
    root, values = math.sqrt(snr), []
    block = max(16, min(prompts, _BLOCK // (8 * relevant)))
    for start in range(0, prompts, block):
        count = min(block, prompts - start)
        ratios = np.zeros((relevant, count))
        ratios[0] += absent
        for token in range(relevant - 1 + others):
            shift = 0.5 * snr if token < relevant - 1 else -0.5 * snr
            weight = np.exp(shift + root * rng.standard_normal(count))
            # e_k/e_{k-1} falls with k: no term exceeds another by more than the weights do
            ratios[1:] = ratios[:-1] * ((ratios[1:] + weight) / (ratios[:-1] + weight))
            ratios[0] += weight
        values.append(ratios[-1])
    ratios = np.concatenate(values)
    odds = np.log(ratios, where=ratios > 0, out=np.full(prompts, -np.inf))
    missed = _missed(odds, snr)
    return float(missed.mean()), float(standard_error(missed))


def _missed(odds: np.ndarray, snr: float) -> np.ndarray:
    """`ψ` of logarithms of F/e^{ν/2}, interpolated; 0 where F is 0."""
    finite = odds[np.isfinite(odds)]
    if finite.size == 0:
        return np.zeros_like(odds)
    root = math.sqrt(snr)
    nodes = np.linspace(finite.min() - 1e-6, finite.max() + 1e-6, _TABLE_NODES)
    step = min(0.35, root / 2.5) / root
    g = np.arange(-root - 9.5, 9.5, step)
    density = np.exp(-0.5 * g**2) * step / math.sqrt(2.0 * math.pi)
    average = scipy.special.expit(nodes[:, None] - 0.5 * snr - root * g) @ density
    table = scipy.interpolate.CubicSpline(nodes, average)
    return np.where(np.isfinite(odds), table(np.where(np.isfinite(odds), odds, nodes[0])), 0.0)
