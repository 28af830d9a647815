"""One, none, or several relevant tokens: the label is the sum of their values.

A random set A of tokens is relevant, and all sets of the same size are equally probable. The scores of relevant tokens
have the mean √ν, those of the others 0, and the label is `y = Σ_{l∈A} z*_l + noise`. Risks are excess mean squares over
the mean number E|A| of relevant tokens, the variance of the label without its noise; so the output 0 has the risk 1.
A head `Σ_l s_l z_l` along v* has the risk `E|1_A - s|²/E|A|`, which is least for `s_l = P(l ∈ A | scores)`.

All risks of these tasks are computed by NumPy, in a fraction of a second for the first call.
"""

import abc
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import as_float, is_concrete, public, require_count, require_float64
from lib._namespace import in_numpy, known
from lib._types import AnyArray, Scalar, Scalars
from lib.single_location import _several
from lib.single_location._moments import Moments
from lib.single_location._posterior import spiked_bayes_risk
from lib.single_location._score_mixture import ScoreMixture, spiked_mixture
from lib.single_location.tasks import (
    _LARGEST_SPIKE,
    _LONGEST_BAYES,
    LocationTask,
    Overlaps,
    _require_length,
    _require_no_cross_overlap,
    _require_snr,
)
from lib.statistics import standard_error

# Logarithms of the one-token expectations at the nodes of a quadrature.
_Logs = Float[np.ndarray, " n"]
# The strongest signal of a simulation: weights are numbers of float64, and not logarithms.
_LARGEST_SIMULATED = 700.0


def _number(value: Any) -> Float[Array, "..."]:
    """Return `value` as an array; a value that is no number is refused in a sentence."""
    try:
        if value is None:  # JAX raises a ValueError for it
            raise TypeError
        return as_float(value)
    except TypeError as error:
        raise ValueError(
            f"A task of several tokens needs numbers: a length, a signal strength. Got {value!r}."
        ) from error


class _RelevantTokens(LocationTask):
    """A task with a random set of relevant tokens, of which all sets of equal size have the same probability.

    Attributes:
      ambient: 0, because the signal is added to the scores.
      in_numpy: true, because NumPy computes the risks.
      never_empty: whether there is always a relevant token.
    """

    ambient: ClassVar[float] = 0.0  # pyright: ignore[reportIncompatibleVariableOverride]
    in_numpy: ClassVar[bool] = True
    never_empty: ClassVar[bool] = False

    @property
    @abc.abstractmethod
    def mean_number(self) -> Scalar:
        """The mean number E|A| of relevant tokens."""

    @abc.abstractmethod
    def log_others(self, absent: _Logs, present: _Logs) -> tuple[_Logs, _Logs]:
        """Return what multiplies the expectations of a relevant token and of another one in Laplace's identity.

        Args:
          absent: `log φ` of a token that is not relevant, shape (n,).
          present: `log φ` of a relevant token, shape (n,).

        Returns:
          Two logarithms, each of shape (n,), for averages divided by E|A|.
        """

    @property
    def _law(self) -> _several.Law:
        return _several.Law(self.log_others, float(self.mean_number), self.never_empty)

    def bayes_bounds(self) -> tuple[float, float]:
        """Return a lower and an upper bound of the Bayes risk, which are equal where it is known.

        Returns:
          Two numbers.
        """
        risk = float(self.bayes_risk())
        return risk, risk

    @abc.abstractmethod
    def simulate(self, prompts: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the mean and the standard error of the Bayes risk over random prompts.

        Args:
          prompts: number of prompts.
          rng: generator of random numbers.

        Returns:
          Two numbers.
        """

    def best_risk(self, activation: Any) -> Scalar:
        """Return the lowest risk of a head with this activation.

        Args:
          activation: an activation.

        Returns:
          The risk, shape (), NaN where it is not resolved.
        """
        self.require_known()
        return activation.best_risk_of_sets(self)

    def head_moments(self, activation: Any, m_k: Scalar | float, q_k: Scalar | float) -> Moments:
        """Return the averages of which the risk of a head consists.

        Args:
          activation: an activation.
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The moments; those that only cross overlaps need are NaN for `softmax`.
        """
        self.require_known()
        return activation.moments_of_sets(self, m_k, q_k)

    @property
    def relevance(self) -> Scalar:
        """The probability q = E|A|/L that a token is relevant."""
        return self.mean_number / self.length

    def softmax_moments(self, m_k: Scalar | float, q_k: Scalar | float, sink: Scalar | float = -math.inf) -> Moments:
        """Return `E Σ_A s/E|A|` and `E Σ s²/E|A|` of a softmax with a sink.

        Args:
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().
          sink: score of the sink, shape (); -∞ is none.

        Returns:
          The moments, NaN where the quadrature misses `E Σ s = 1`; those of cross overlaps are always NaN.
        """
        mean, slope = math.sqrt(float(self.snr)) * float(m_k), math.sqrt(float(q_k))
        found = _several.softmax_moments(self._law, math.log(float(self.length)), mean, slope, float(sink))
        if abs(found.mass * float(self.mean_number) - 1.0) > _several.MASS_TOLERANCE:
            found = found._replace(hidden=math.nan, power=math.nan)
        return Moments(*map(np.asarray, (found.hidden, found.power, *(math.nan,) * 5)))

    def elementwise_risk(self) -> float:
        """Return the lowest risk of all element-wise weights, which depends on q and ν alone.

        Returns:
          The risk, NaN for ν > 2500.
        """
        resolved = bool(self.snr <= _LARGEST_SPIKE)
        return _several.elementwise_bayes_risk(float(self.relevance), float(self.snr)) if resolved else math.nan

    def best_softmax(self, *, with_sink: bool) -> _several.BestSoftmax:
        """Return the softmax of lowest risk, over its slope and the score of its sink.

        Args:
          with_sink: whether there is a sink.

        Returns:
          Its risk, NaN where the quadrature misses `E Σ s = 1`, with the slope and the sink.
        """
        length, snr = float(self.length), float(self.snr)
        if snr == 0.0:
            return _several.BestSoftmax(1.0 - float(self.relevance), 0.0, -math.inf, 1.0)
        found = _several.best_softmax(self._law, math.log(length), snr, with_sink=with_sink)
        resolved = abs(found.mass * float(self.mean_number) - 1.0) < _several.MASS_TOLERANCE
        return found if resolved else found._replace(risk=math.nan)

    def signal_scores(self, normals: Float[AnyArray, "*n L"], uniform: Scalars) -> Float[AnyArray, "*n L"]:
        """Raise, because replicas and trained heads are known for one relevant token."""
        raise ValueError(
            "`draw`, `fresh_risk`, training and the theory of finite samples need `Spiked` or `Max`, because they "
            f"store one relevant token per prompt. Got {type(self).__name__}."
        )

    def score_mixture(self, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Raise, because of the normalised activations only softmax is known here."""
        raise ValueError(
            "Of the activations that are normalised over the tokens, only `softmax` and `sink_softmax` are known for "
            f"several relevant tokens. Got the task {type(self).__name__}."
        )

    def marginals(self, m_k: Scalar, q_k: Scalar, kink: Scalar = 0.0) -> ScoreMixture:
        """Return the distributions for one relevant token among 1/q: element-wise weights depend on q alone."""
        relevance, snr, m_k, q_k, kink = map(known, (self.relevance, self.snr, m_k, q_k, kink))
        return spiked_mixture(1.0 / relevance, np.sqrt(snr) * m_k, q_k, np.asarray(kink, float))

    def require_known(self) -> None:
        """Raise if the task is traced, because NumPy computes its risks."""
        if not is_concrete(*jax.tree.leaves(self)):
            raise ValueError(
                f"Risks of `{type(self).__name__}` are computed by NumPy, which needs known numbers: call them "
                f"outside of `jit`, `vmap` and `grad`; stacked tasks give stacked risks. Got {self}."
            )

    def require_overlaps(self, overlaps: Overlaps) -> None:
        """Raise if a concrete cross overlap is not zero: the formulas are for values that are independent of scores."""
        _require_no_cross_overlap(self, overlaps, "the scores")

    def _resolved(self) -> bool:
        return bool(self.snr <= _LARGEST_SPIKE) and bool(self.length <= _LONGEST_BAYES)


class Several(_RelevantTokens):
    """Exactly r tokens are relevant: a uniform subset of r of the L tokens.

    Attributes:
      length: number L of tokens, a whole number ≥ 1.
      relevant: number r of relevant tokens, a whole number, 1 ≤ r ≤ L; `Spiked` for r = 1.
      snr: signal strength ν, finite and ≥ 0.
      never_empty: true, as r ≥ 1.
    """

    never_empty: ClassVar[bool] = True
    length: Float[Array, "*stack"] = eqx.field(converter=_number)
    relevant: Float[Array, "*stack"] = eqx.field(converter=_number)
    snr: Float[Array, "*stack"] = eqx.field(converter=_number)

    def __check_init__(self):
        """Check that r is a number of tokens, at most L."""
        _require_length("Several", self.length)
        _require_snr("Several", self.snr, "√ν is the mean of a score.", largest="finite")
        if not is_concrete(self.relevant, self.length):
            return
        relevant = np.asarray(self.relevant)
        if not ((relevant >= 1) & (relevant == np.floor(relevant)) & (relevant <= np.asarray(self.length))).all():
            raise ValueError(
                "`Several(relevant=...)` must be a whole number from 1 to the length: it counts the relevant ones of "
                f"L tokens. Got {self.relevant} of {self.length}."
            )

    @property
    def mean_number(self) -> Scalar:
        """The number r."""
        return self.relevant

    def log_others(self, absent: _Logs, present: _Logs) -> tuple[_Logs, _Logs]:
        """Return the products over r - 1 and L - r tokens, and over r and L - r - 1."""
        length, relevant = float(self.length), float(self.relevant)
        of_relevant = (relevant - 1.0) * present + (length - relevant) * absent
        if length == relevant:
            return of_relevant, np.full_like(of_relevant, -np.inf)
        ratio = math.log((length - relevant) / relevant)
        return of_relevant, ratio + relevant * present + (length - relevant - 1.0) * absent

    def bayes_risk(self) -> Scalar:
        """Return the Bayes risk for r = 1, r = L - 1 and r = L; raise for other r."""
        length, relevant = float(self.length), float(self.relevant)
        if not self._resolved():
            return np.asarray(np.nan)
        if relevant == length:
            return np.asarray(0.0)
        if relevant in (1.0, length - 1.0):
            return np.asarray(_spiked(length, float(self.snr)) / relevant)
        raise ValueError(
            "`bayes_risk(Several(...))` is known for relevant = 1, length - 1 and length only; for other numbers use "
            f"`bayes_risk_bounds` or `simulate_bayes_risk`. Got relevant = {relevant:.0f} of length = {length:.0f}."
        )

    def bayes_bounds(self) -> tuple[float, float]:
        """Return the risk of r blocks with one relevant token each, and that of the best element-wise weights."""
        length, relevant, snr = float(self.length), float(self.relevant), float(self.snr)
        if not self._resolved():
            return math.nan, math.nan
        upper = _several.elementwise_bayes_risk(relevant / length, snr)
        return max(_of_blocks(length, each, snr) * each / relevant for each in {relevant, length - relevant}), upper

    def best_softmax(self, *, with_sink: bool) -> _several.BestSoftmax:
        """Return the posterior for r = 1, where it is softmax, and otherwise search."""
        if float(self.relevant) == 1.0 and self._resolved():
            return _several.BestSoftmax(float(self.bayes_risk()), math.sqrt(float(self.snr)), -math.inf, 1.0)
        return super().best_softmax(with_sink=with_sink)

    def simulate(self, prompts: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the simulated Bayes risk from ratios of elementary symmetric polynomials."""
        relevant, length = int(self.relevant), int(self.length)
        if relevant == length:
            return 0.0, 0.0
        return _several.simulate_odds(relevant, length - relevant, float(self.snr), prompts, rng)


class Independent(_RelevantTokens):
    """Each token is relevant with probability q, independently of the others.

    Attributes:
      length: number L of tokens, a whole number ≥ 1.
      probability: probability q, 0 < q ≤ 1.
      snr: signal strength ν, finite and ≥ 0.
    """

    length: Float[Array, "*stack"] = eqx.field(converter=_number)
    probability: Float[Array, "*stack"] = eqx.field(converter=_number)
    snr: Float[Array, "*stack"] = eqx.field(converter=_number)

    def __check_init__(self):
        """Check the length and the probability."""
        _require_length("Independent", self.length)
        _require_snr("Independent", self.snr, "√ν is the mean of a score.", largest="finite")
        _require_probability("Independent", "probability", self.probability)

    @property
    def mean_number(self) -> Scalar:
        """The mean number Lq."""
        return self.length * self.probability

    def log_others(self, absent: _Logs, present: _Logs) -> tuple[_Logs, _Logs]:
        """Return powers of the mean over both kinds of tokens."""
        length, q = float(self.length), float(self.probability)
        with np.errstate(divide="ignore"):
            lost = -(1.0 - q) * np.expm1(absent) - q * np.expm1(present)
            kept = np.logaddexp(np.log1p(-q) + absent, math.log(q) + present)
            others = (length - 1.0) * np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), kept)
            return others, np.log1p(-q) - math.log(q) + others

    def bayes_risk(self) -> Scalar:
        """Return the risk of the posterior `sigmoid(√ν χ - ν/2 + ln(q/(1-q)))` of each token."""
        if not self._resolved():
            return np.asarray(np.nan)
        return np.asarray(_several.elementwise_bayes_risk(float(self.probability), float(self.snr)))

    def simulate(self, prompts: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the mean of what the posterior of a relevant token misses."""
        q, snr = float(self.probability), float(self.snr)
        log_odds = 0.5 * snr + math.log(q) - math.log1p(-q) if q < 1 else math.inf
        missed = 1.0 / (1.0 + np.exp(log_odds + math.sqrt(snr) * rng.standard_normal(prompts)))
        return float(missed.mean()), float(standard_error(missed))


class Absent(_RelevantTokens):
    """One token is relevant with probability π, and none otherwise.

    Attributes:
      length: number L of tokens, a whole number ≥ 1.
      snr: signal strength ν, finite and ≥ 0.
      present: probability π that there is a relevant token, 0 < π ≤ 1; `Spiked` for π = 1.
    """

    length: Float[Array, "*stack"] = eqx.field(converter=_number)
    snr: Float[Array, "*stack"] = eqx.field(converter=_number)
    present: Float[Array, "*stack"] = eqx.field(converter=_number)

    def __check_init__(self):
        """Check the length and the probability."""
        _require_length("Absent", self.length)
        _require_snr("Absent", self.snr, "√ν is the mean of a score.", largest="finite")
        _require_probability("Absent", "present", self.present)

    @property
    def mean_number(self) -> Scalar:
        """The mean number π."""
        return self.present

    @property
    def bayes_sink(self) -> Float[np.ndarray, "*stack"]:
        """Score `ν/2 + ln L + ln((1-π)/π)` of the sink with which the softmax of √ν χ is the posterior."""
        with np.errstate(divide="ignore"):
            odds = np.log1p(-np.asarray(self.present)) - np.log(np.asarray(self.present))
        return np.asarray(0.5 * np.asarray(self.snr) + np.log(np.asarray(self.length)) + odds)

    def log_others(self, absent: _Logs, present: _Logs) -> tuple[_Logs, _Logs]:
        """Return the products over prompts with a relevant token and over prompts without."""
        length, there = float(self.length), float(self.present)
        of_relevant = (length - 1.0) * absent
        with np.errstate(divide="ignore", invalid="ignore"):
            beside = np.log(length - 1.0) + present + (length - 2.0) * absent if length > 1 else -np.inf
            return of_relevant, np.logaddexp(beside, np.log(length) + np.log1p(-there) - np.log(there) + of_relevant)

    def bayes_risk(self) -> Scalar:
        """Return the risk of the posterior, a softmax with a sink."""
        if not self._resolved():
            return np.asarray(np.nan)
        length, snr, present = float(self.length), float(self.snr), float(self.present)
        if snr == 0.0:
            return np.asarray(1.0 - present / length)
        return np.asarray(_several.absent_bayes_risk(length, snr, present))

    def best_softmax(self, *, with_sink: bool) -> _several.BestSoftmax:
        """Return the posterior, which is softmax with a sink, or search for the best softmax without one."""
        if with_sink and self._resolved():
            return _several.BestSoftmax(
                float(self.bayes_risk()), math.sqrt(float(self.snr)), float(self.bayes_sink), 1.0
            )
        return super().best_softmax(with_sink=with_sink)

    def simulate(self, prompts: int, rng: np.random.Generator) -> tuple[float, float]:
        """Return the mean of what the posterior of a relevant token misses, given the other tokens."""
        snr, present, length = float(self.snr), float(self.present), int(self.length)
        return _several.simulate_odds(1, length - 1, snr, prompts, rng, absent=length * (1.0 - present) / present)


@public
def bayes_risk_bounds(task: _RelevantTokens) -> tuple[Float[Array, "*stack"], Float[Array, "*stack"]]:
    """Return a lower and an upper bound of the Bayes risk.

    For `Several`, a helper who names r blocks of tokens with one relevant token each can only lower the risk, and the
    best element-wise weights can only be worse than the posterior. Blocks have ⌊L/r⌋ or ⌈L/r⌉ tokens: whatever the
    sizes, given blocks that separate the relevant tokens all choices of one token per block are equally probable. Both
    bounds are also taken for the tokens that are not relevant, as `r E_r = (L - r) E_{L-r}`, and the better lower one
    counts.

    Args:
      task: `Several`, `Independent` or `Absent` with $L ≤ 10^{12}$ and ν ≤ 2500; stacked tasks give stacked bounds.

    Returns:
      Lower and upper bound, each of the shape of the task, with relative errors below 1e-10; equal for `Independent`
      and `Absent`, whose Bayes risk is exact. NaN outside the domain. 10 ms per task, nothing is compiled.

    Raises:
      ValueError: if float64 is off, or a traced task.

    Source: derived here, see book/several_relevant_tokens. Transformations: none.
    """
    require_float64("bayes_risk_bounds", task.length)
    task.require_known()
    return in_numpy(lambda each: each.bayes_bounds(), task)


@public
def simulate_bayes_risk(
    task: _RelevantTokens, prompts: int, *, key: PRNGKeyArray
) -> tuple[Float[Array, "*stack"], Float[Array, "*stack"]]:
    """Return the Bayes risk as an average over random prompts, and its standard error.

    The score of one relevant token is averaged exactly, given all others.

    Args:
      task: `Several`, `Independent` or `Absent` with ν ≤ 700; stacked tasks give stacked risks, which share the random
        numbers.
      prompts: number of prompts, at least 2.
      key: the random key.

    Returns:
      Risk and standard error, each of the shape of the task. With $10^6$ prompts at L = 100 the standard error is about
      1e-4. The time is $L r$ operations per prompt: 1 s for $10^5$ prompts with L = 100 and r = 10.

    Raises:
      ValueError: if float64 is off, ν > 700, fewer than two prompts, or a traced task.

    Source: derived here, see book/several_relevant_tokens. Transformations: none.
    """
    require_float64("simulate_bayes_risk", task.length)
    count = require_count("simulate_bayes_risk", "prompts", prompts, "each is one prompt of the average.")
    task.require_known()
    if count < 2 or np.any(np.asarray(task.snr) > _LARGEST_SIMULATED):
        raise ValueError(
            "`simulate_bayes_risk(task, prompts)` needs two prompts, for a standard error, and ν ≤ "
            f"{_LARGEST_SIMULATED:.0f}, so that weights are numbers of float64. Got {count} and ν = {task.snr}."
        )
    seed = np.asarray(jr.key_data(key))
    return in_numpy(lambda each: each.simulate(count, np.random.default_rng(seed)), task)


def _require_probability(owner: str, name: str, value: Float[Array, "..."]) -> None:
    if is_concrete(value) and not ((np.asarray(value) > 0) & (np.asarray(value) <= 1)).all():
        raise ValueError(
            f"`{owner}({name}=...)` must be a probability above 0: without a relevant token there is no label. "
            f"Got {value}."
        )


def _spiked(length: float, snr: float) -> float:
    return float(spiked_bayes_risk(np.float64(length), np.float64(snr))) if length > 1.0 else 0.0


def _of_blocks(length: float, blocks: float, snr: float) -> float:
    """Mean Bayes risk of a relevant token in each of `blocks` blocks of ⌊L/blocks⌋ or ⌈L/blocks⌉ tokens."""
    if blocks == 0.0:
        return 0.0
    size, longer = divmod(length, blocks)
    shares = {size: blocks - longer, size + 1.0: longer}
    return sum(share * _spiked(each, snr) for each, share in shares.items() if share) / blocks
