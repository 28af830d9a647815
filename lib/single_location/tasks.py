"""Single-location regression [D26]: one of the L tokens of a prompt carries the answer, and a head has to find it.

Two directions of $R^D$, `k*` and `v*`, orthogonal and of squared norm D, are unknown. Token l has the score
`χ*_l = X_l·k*/√D` and the value `z*_l = X_l·v*/√D`; the label is `y = z*_ε + noise` with a hidden index ε. A task is
the joint distribution of ε and the scores. Everything else of a prompt is independent standard normal.

`Spiked` is the standard task. In `Max` the signal strength ν is an inverse temperature, so that risks of the two at
equal ν are not comparable.
"""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import ndtr

from lib._checks import as_array, as_float, is_concrete, public
from lib._namespace import known, namespace, softmax
from lib._quasi_random import quasi_normals
from lib._types import AnyArray, Scalar, Scalars
from lib.random import _split, _uniform, normal
from lib.single_location import _posterior
from lib.single_location._moments import Moments
from lib.single_location._score_mixture import SMALLEST_SPREAD, ScoreMixture, max_marginals, max_mixture, spiked_mixture

# Longest prompt whose tokens are stored one by one.
_LONGEST = 500
# Quasi-random points of `fresh_risk`.
_RISK_POINTS = 2**14
# The domain of the Bayes risks: the longest prompt, and the largest ν in the spiked and in the max model. Near ν = 2800
# the spiked risk of two tokens falls below the smallest number of float64.
_LONGEST_BAYES, _LARGEST_SPIKE, _LARGEST_SNR = 1e12, 2500.0, 1000.0


class Overlaps(eqx.Module):
    """Scalar products of the key vector k and the value vector v with the hidden k*, v* and each other, over D.

    In the setting of [M24] all vectors have length 1 and nothing is divided by D.

    The three cross overlaps vanish wherever the symmetry between k and v is not broken. The leaves of a stack of heads
    have the same leading shape.

    Attributes:
      m_k: `k·k*/D`.
      q_k: `|k|²/D`.
      m_v: `v·v*/D`.
      q_v: `|v|²/D`.
      m_kv: the cross overlap `k·v*/D`.
      m_vk: the cross overlap `v·k*/D`.
      q_vk: the cross overlap `k·v/D`.
    """

    m_k: Float[Array, "*stack"] = eqx.field(converter=as_float)
    q_k: Float[Array, "*stack"] = eqx.field(converter=as_float)
    m_v: Float[Array, "*stack"] = eqx.field(converter=as_float)
    q_v: Float[Array, "*stack"] = eqx.field(converter=as_float)
    m_kv: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
    m_vk: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)
    q_vk: Float[Array, "*stack"] = eqx.field(converter=as_float, default=0.0)


class Head(eqx.Module):
    """A single attention head of one output: it scores tokens by the vector k and reads their values by the vector v.

    The caller chooses their lengths: √D and `Σ_l s_l(Xk/√D) (Xv/√D)_l` in [D26], the unit sphere in [M24].

    Attributes:
      key: the key vector k, shape (D,).
      value: the value vector v, shape (D,).
    """

    key: Float[Array, " D"]
    value: Float[Array, " D"]

    @classmethod
    @public
    def orthogonal(cls, dimension: int, *, key: PRNGKeyArray) -> "Head":
        """Return two random orthogonal directions of squared norm D, such as the hidden ones of a task.

        Args:
          dimension: dimension D, at least 2.
          key: random key.

        Returns:
          The directions.
        """
        normals = normal(key, (dimension, 2))
        frame, _ = namespace(normals).linalg.qr(normals)
        return cls(*map(as_array, np.sqrt(dimension) * frame.T))

    @public
    def overlaps(self, truth: "Head") -> Overlaps:
        """Return the seven scalar products with the truth and of this head itself, over D.

        Args:
          truth: the hidden directions.

        Returns:
          The overlaps, each of shape ().

        Transformations: jit, vmap, grad.
        """
        k, v, along_k, along_v = (
            vector / jnp.sqrt(vector.size) for vector in (self.key, self.value, truth.key, truth.value)
        )
        return Overlaps(
            m_k=k @ along_k, q_k=k @ k, m_v=v @ along_v, q_v=v @ v, m_kv=k @ along_v, m_vk=v @ along_k, q_vk=k @ v
        )


class _TrainingSet(eqx.Module):
    """n prompts of L tokens in $R^D$, the hidden token first, and their labels.

    Attributes:
      tokens: the tokens.
      labels: the noisy labels.
    """

    tokens: Float[Array, "n L D"]
    labels: Float[Array, " n"]

    def outputs(self, activation: Any, head: Head) -> Float[Array, " n"]:
        """Return the outputs `Σ_l s_l(χ) z_l` of a head in the normalisation of [D26], one per prompt."""
        projections = self.tokens @ jnp.stack([head.key, head.value], axis=1) / jnp.sqrt(head.key.size)
        return jnp.sum(activation.weights(projections[..., 0]) * projections[..., 1], axis=1)


class LocationTask(eqx.Module):
    """Joint distribution of the hidden index and the scores of a prompt.

    Both leaves are arrays, so that tasks stack and L may be $10^{12}$.

    Attributes:
      length: number L of tokens.
      snr: signal strength ν.
      ambient: variance of a score without the signal: 1 where scores are those of plain Gaussian tokens, 0 where the
        signal is added to them.
      in_numpy: whether risks are computed by NumPy, however many they are.
    """

    length: eqx.AbstractVar[Float[Array, "*stack"]]
    snr: eqx.AbstractVar[Float[Array, "*stack"]]
    ambient: ClassVar[float]
    in_numpy: ClassVar[bool] = False

    @abc.abstractmethod
    def signal_scores(self, normals: Float[AnyArray, "*n L"], uniform: Scalars) -> Float[AnyArray, "*n L"]:
        """Return the informative part of the L scores, with the hidden token first.

        Given it, `χ_l = m_k·signal_l + √(q_k - ambient·m_k²)·noise` for a key vector of overlaps $m_k$ and $q_k$.

        Args:
          normals: L standard normals, shape (L,), or (..., L) for several draws.
          uniform: a uniform number between 0 and 1, shape (), or (...).

        Returns:
          The signal of each token, of the shape of `normals`.

        Transformations: jit, vmap, grad.
        """

    @public
    def draw(self, truth: Head, n: int, *, noise_std: float | Float[Array, ""], key: PRNGKeyArray) -> _TrainingSet:
        """Return `n` prompts of a task with L ≤ 500, the hidden token first; no output of a head depends on order.

        Args:
          truth: the hidden directions.
          n: number of prompts.
          noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
          key: random key.

        Returns:
          Tokens of shape (n, L, D) and labels of shape (n,). `.outputs(activation, head)` returns those of a head.

        Raises:
          ValueError: if the length is traced or above 500, or if the task has several relevant tokens.

        Source: [D26].
        """
        token_key, geometry_key, level_key, noise_key = _split(key, 4)
        length, dimension = _static_length(self), truth.key.size
        task, truth, noise_std = jax.tree.map(known, (self, truth, noise_std))
        signal_scores = task.signal_scores(normal(geometry_key, (n, length)), _uniform(level_key, (n,)))
        tokens = normal(token_key, (n, length, dimension))
        along_key = signal_scores / np.sqrt(dimension) - self.ambient * tokens @ truth.key / dimension
        tokens = tokens + along_key[..., None] * truth.key
        labels = tokens[:, 0] @ truth.value / np.sqrt(dimension) + noise_std * normal(noise_key, (n,))
        return _TrainingSet(as_array(tokens), as_array(labels))

    @public
    def fresh_risk(self, activation: Any, overlaps: Overlaps) -> Float[Array, ""]:
        """Return the excess risk of a head on fresh prompts from its seven overlaps, for a task with L ≤ 500.

        It is an average over fixed quasi-random scores: given them, values and label are jointly Gaussian, so that the
        average over these is explicit.

        Args:
          activation: an `Activation`.
          overlaps: all seven overlaps, each of shape ().

        Returns:
          The risk, shape (), with an absolute error of about 1e-3; `attention_risk` is more accurate where it applies.
          20 ms by NumPy; where an argument is traced it takes two seconds to compile.

        Raises:
          ValueError: if the length is traced or above 500, or if the task has several relevant tokens.

        Source: [D26]; `Max` is derived here. Transformations: jit, vmap, grad.
        """
        points = quasi_normals(2 * _static_length(self) + 1, _RISK_POINTS, (0,))[0]
        drawn = (*np.split(points[:, :-1], 2, axis=1), ndtr(points[:, -1]))
        task, activation, o = jax.tree.map(known, (self, activation, overlaps))
        xp, ambient = namespace(*jax.tree.leaves((task, activation, o))), self.ambient
        # Behind the barrier the points are data: XLA would otherwise sort thousands of constants while it compiles.
        geometry, noise, level = drawn if xp is np else jax.lax.optimization_barrier(drawn)
        signal_scores = task.signal_scores(geometry, level)
        score_variance = o.q_k - ambient * o.m_k**2
        score_value_covariance, value_variance = o.q_vk - ambient * o.m_k * o.m_vk, o.q_v - ambient * o.m_vk**2
        centred_scores = xp.sqrt(score_variance) * noise
        weights = activation.weights(o.m_k * signal_scores + centred_scores)
        values = o.m_vk * signal_scores + score_value_covariance / score_variance * centred_scores
        residual_mean = o.m_kv / score_variance * centred_scores[:, 0] - xp.sum(weights * values, axis=1)
        attention, squared_weights = xp.mean(weights[:, 0]), xp.mean(xp.sum(weights**2, axis=1))
        alignment = o.m_v - score_value_covariance * o.m_kv / score_variance
        label_remainder = 1.0 - o.m_kv**2 / score_variance
        return as_array(
            xp.mean(residual_mean**2)
            + label_remainder
            - 2.0 * alignment * attention
            + (value_variance - score_value_covariance**2 / score_variance) * squared_weights
        )

    @abc.abstractmethod
    def score_mixture(self, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Return the joint distribution of all scores of a head.

        Args:
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The distribution, on a grid.
        """

    @abc.abstractmethod
    def marginals(self, m_k: Scalar, q_k: Scalar, kink: Scalar = 0.0) -> ScoreMixture:
        """Return the distributions of the hidden score and of another score, not jointly.

        Args:
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().
          kink: a score at which the grid shall have a node, shape ().

        Returns:
          A mixture of one row.
        """

    @abc.abstractmethod
    def bayes_risk(self) -> Scalar:
        """Return the Bayes risk of one task.

        Returns:
          The risk, shape (), NaN outside the domain of `bayes_risk`.

        Transformations: jit, vmap, grad.
        """

    def best_risk(self, activation: Any) -> Scalar:
        """Return the lowest risk of a head with this activation, k = c k* and v along v*.

        Args:
          activation: an `Activation`.

        Returns:
          The risk, shape (), NaN where it is not resolved.

        Transformations: jit, vmap, grad.
        """
        return activation.best_risk(self)

    def head_moments(self, activation: Any, m_k: Scalar, q_k: Scalar) -> Moments:
        """Return the averages of which the risk of a head consists.

        Args:
          activation: an `Activation`.
          m_k: overlap of the key vector with k*, shape ().
          q_k: squared norm of the key vector over D, shape ().

        Returns:
          The moments, NaN where the quadrature does not resolve them.
        """
        return activation.head_moments(self, m_k, q_k)

    def require_known(self) -> None:
        """Raise where risks are computed by NumPy and the task is traced.

        Raises:
          ValueError: for a traced task with `in_numpy`.
        """

    def require_overlaps(self, overlaps: Overlaps) -> None:
        """Raise where the risk of a head with these overlaps is not known here.

        Args:
          overlaps: the overlaps of the head.

        Raises:
          ValueError: for `Max` and sets of relevant tokens, if a concrete cross overlap is not zero.
        """

    @public
    def risk(self, moments: Moments, overlaps: Overlaps) -> Scalar:
        """Return the excess risk of a head from the moments of its weights.

        Args:
          moments: averages of the head's weights and scores.
          overlaps: the overlaps of the head.

        Returns:
          `1 - 2 m_v E s_ε + q_v E Σ s²` where cross overlaps vanish, because values are normal given the scores;
          shape ().

        Source: [D26]. Transformations: jit, vmap, grad.
        """
        return 1.0 - 2.0 * overlaps.m_v * moments.hidden + overlaps.q_v * moments.power


class Spiked(LocationTask):
    """The spiked task [D26] `X_l = Z_l + 1{l = ε}√(ν/D) k*`, ε uniform: the hidden token's score has mean √ν.

    Attributes:
      length: number L of tokens, a whole number ≥ 1.
      snr: signal strength ν, finite and ≥ 0.
      ambient: 0, because the signal is added to the scores.
    """

    length: Float[Array, "*stack"] = eqx.field(converter=as_float)
    snr: Float[Array, "*stack"] = eqx.field(converter=as_float)
    ambient: ClassVar[float] = 0.0  # pyright: ignore[reportIncompatibleVariableOverride]

    def __check_init__(self):
        """Check that there is at least one token and that the signal strength is finite."""
        _require_length("Spiked", self.length)
        _require_snr("Spiked", self.snr, "√ν is the mean of a score.", largest="finite")

    @public
    def signal_scores(self, normals: Float[AnyArray, "*n L"], uniform: Scalars) -> Float[AnyArray, "*n L"]:
        """Return √ν for the hidden token and 0 for the others, whatever the draw."""
        xp = namespace(normals, self.snr)
        return xp.where(np.arange(normals.shape[-1]) == 0, xp.sqrt(self.snr), xp.zeros_like(normals))

    @public
    def score_mixture(self, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Return the joint distribution of independent normal scores."""
        return self.marginals(m_k, q_k)

    @public
    def marginals(self, m_k: Scalar, q_k: Scalar, kink: Scalar = 0.0) -> ScoreMixture:
        """Return the same distribution, because tokens are independent."""
        xp = namespace(self.length, self.snr, m_k, q_k, kink)
        return spiked_mixture(self.length, xp.sqrt(self.snr) * m_k, q_k, xp.asarray(kink, float))

    @public
    def bayes_integrals(self) -> tuple[Scalar, Scalar]:
        """Return the Bayes risk by two integrals, `1 - E p_ε` and `1 - E Σ p²` with the posterior `softmax(√ν χ*)`.

        Returns:
          Two numbers, each of shape (), NaN outside the domain of `bayes_risk`.

        Transformations: jit, vmap, grad.
        """
        by_squares = _posterior.spiked_bayes_risk_by_squares(self.length, self.snr)
        xp = namespace(by_squares)
        return self.bayes_risk(), xp.where(self._resolved(), by_squares, np.nan)

    @public
    def bayes_risk(self) -> Scalar:
        """Return `1 - E p_ε`."""
        risk = _posterior.spiked_bayes_risk(self.length, self.snr)
        return namespace(risk).where(self._resolved(), risk, np.nan)

    def _resolved(self):
        return (self.snr <= _LARGEST_SPIKE) & (self.length <= _LONGEST_BAYES)

    @public
    def risk(self, moments: Moments, overlaps: Overlaps) -> Scalar:
        """Return the excess risk with all seven overlaps [D26], values being normal given the scores."""
        xp = namespace(self.snr, moments.hidden, overlaps.q_k)
        key = xp.maximum(overlaps.q_k, SMALLEST_SPREAD**2)
        answer, spike, reading = overlaps.m_kv / key, xp.sqrt(self.snr) * overlaps.m_vk, overlaps.q_vk / key
        shifts = (
            answer * overlaps.m_kv
            + spike**2 * moments.hidden_power
            + reading**2 * moments.pooled_power
            - 2.0 * answer * (spike * moments.hidden_score + reading * moments.hidden_pooled)
            + 2.0 * spike * reading * moments.weight_pooled
        )
        rest = 1.0 - answer * overlaps.m_kv
        aligned, length = overlaps.m_v - overlaps.q_vk * answer, overlaps.q_v - overlaps.q_vk * reading
        return shifts + rest - 2.0 * aligned * moments.hidden + length * moments.power


class Max(LocationTask):
    """The max task: `X_l` standard normal, `ε ~ softmax(ν χ*)`, and the argmax for ν = ∞ [D26].

    Attributes:
      length: number L of tokens, a whole number ≥ 1.
      snr: signal strength ν ≥ 0; may be infinite.
      ambient: 1, because scores are those of plain Gaussian tokens.
    """

    length: Float[Array, "*stack"] = eqx.field(converter=as_float)
    snr: Float[Array, "*stack"] = eqx.field(converter=as_float)
    ambient: ClassVar[float] = 1.0  # pyright: ignore[reportIncompatibleVariableOverride]

    def __check_init__(self):
        """Check that there is at least one token; the signal strength may be infinite."""
        _require_length("Max", self.length)
        _require_snr("Max", self.snr, "ν multiplies the scores.", largest="infinite")

    @public
    def signal_scores(self, normals: Float[AnyArray, "*n L"], uniform: Scalars) -> Float[AnyArray, "*n L"]:
        """Return the scores themselves, the one that `uniform` chooses first, the others in increasing order.

        Scores are sorted before one is chosen, so that a small change of the draw seldom changes much, as quasi-random
        points require.
        """
        xp = namespace(normals, uniform, self.snr)
        ordered, last = xp.sort(normals), normals.shape[-1] - 1
        certain = xp.isinf(self.snr)
        climb = xp.cumsum(softmax(xp.where(certain, 0.0, self.snr) * ordered), axis=-1)
        below = xp.sum(climb < xp.expand_dims(uniform, -1), axis=-1, keepdims=True)
        hidden = xp.where(certain, last, xp.minimum(below, last))
        others = xp.where(np.arange(last) < hidden, ordered[..., :-1], ordered[..., 1:])
        return xp.concatenate([xp.take_along_axis(ordered, hidden, axis=-1), others], axis=-1)

    @public
    def score_mixture(self, m_k: Scalar, q_k: Scalar) -> ScoreMixture:
        """Return the mixture over the largest of νχ* plus Gumbel noise, given which tokens are independent."""
        return max_mixture(self.length, self.snr, m_k, q_k)

    @public
    def marginals(self, m_k: Scalar, q_k: Scalar, kink: Scalar = 0.0) -> ScoreMixture:
        """Return the distribution of a score tilted towards large χ*, and what it leaves for the others."""
        xp = namespace(self.length, self.snr, m_k, q_k, kink)
        return max_marginals(self.length, self.snr, m_k, q_k, xp.asarray(kink, float))

    @public
    def bayes_integrals(self) -> tuple[Scalar, Scalar]:
        """Return the Bayes risk, `1 - E Σ p²` with the posterior `softmax(ν χ*)`, by pairs and by squares; 0 for ν = ∞.

        Returns:
          Two numbers, each of shape (), NaN outside the domain of `bayes_risk`.

        Transformations: jit, vmap, grad.
        """
        by_squares = _posterior.max_bayes_risk_by_squares(
            self.length, namespace(self.snr).minimum(self.snr, _LARGEST_SNR)
        )
        return self.bayes_risk(), self._where_resolved(by_squares)

    @public
    def bayes_risk(self) -> Scalar:
        """Return `1 - E Σ p²` by pairs."""
        return self._where_resolved(
            _posterior.max_bayes_risk(self.length, namespace(self.snr).minimum(self.snr, _LARGEST_SNR))
        )

    def _where_resolved(self, risk):
        xp = namespace(self.snr, self.length)
        certain = xp.where(xp.isinf(self.snr), 0.0, np.nan)
        risk = xp.where(self.snr <= _LARGEST_SNR, risk, certain)
        return xp.where(self.length <= _LONGEST_BAYES, risk, np.nan)

    def require_overlaps(self, overlaps: Overlaps) -> None:
        """Raise if a concrete cross overlap is not zero: values then depend on the scores that choose ε."""
        _require_no_cross_overlap(self, overlaps, "the scores that choose the hidden token")


def _static_length(task: LocationTask) -> int:
    """Return L as a Python integer, for theories that store the tokens of a prompt one by one."""
    if not is_concrete(task.length) or np.ndim(task.length) or int(task.length) > _LONGEST:
        raise ValueError(
            f"`task.length` must be one known number, at most {_LONGEST}, where the tokens of a prompt are stored one "
            f"by one. Got {task.length}."
        )
    return int(task.length)


@public
def _require_setting(
    owner: str,
    *,
    noise_std: Scalar,
    alpha: Scalar,
    ridge: Sequence[Scalar] = (np.inf,),
) -> None:
    """Raise `ValueError` for concrete values that no fit to n = αD noisy prompts has."""
    if is_concrete(noise_std, alpha, *ridge) and not (noise_std >= 0 and alpha > 0 and min(ridge) > 0):
        raise ValueError(
            f"`{owner}` needs noise_std ≥ 0, alpha > 0 and positive ridges: it fits n = αD prompts, regularised where "
            f"a ridge is asked for. Got noise_std = {noise_std}, alpha = {alpha}, ridge = {ridge}."
        )


def _require_no_cross_overlap(task: LocationTask, overlaps: Overlaps, scores: str) -> None:
    cross = (overlaps.m_kv, overlaps.m_vk, overlaps.q_vk)
    if is_concrete(*cross) and any(np.any(np.asarray(overlap) != 0) for overlap in cross):
        raise ValueError(
            f"`attention_risk({type(task).__name__}(...), overlaps=...)` needs m_kv = m_vk = q_vk = 0, because with "
            f"them the values depend on {scores}. Got {[float(np.max(each)) for each in cross]}."
        )


def _require_length(owner: str, length: Float[Array, "..."]) -> None:
    counts = np.asarray(length) if is_concrete(length) else np.ones(())
    if not ((counts >= 1) & np.isfinite(counts) & (counts == np.floor(counts))).all():
        raise ValueError(
            f"`{owner}(length=...)` must be a whole number ≥ 1: it counts the tokens of a prompt. Got {length}."
        )


def _require_snr(owner: str, snr: Float[Array, "..."], reason: str, *, largest: str) -> None:
    values = np.asarray(snr) if is_concrete(snr) else np.zeros(())
    if not (values >= 0).all() or (largest == "finite" and np.isinf(values).any()):
        raise ValueError(f"`{owner}(snr=...)` must be ≥ 0, at most {largest}: {reason} Got {snr}.")
