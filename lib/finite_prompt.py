"""Finite prompts of Gaussian tokens, exactly: two functions of (τ, ln L) give every error.

Tokens i.i.d. N(m, Γ), tilt ξ = Uz, τ² = ⟨ξ, Γξ⟩: the scores are $⟨ξ, m⟩ + τ g_i$ with $g_i$ standard normal. Given the
scores, the rest of each token is an independent Gaussian, so with p = softmax(τg) and $ĝ = Σ p_i g_i$

    T[μ̂_L](z) = V (m + (Γξ/τ) ĝ + √(Σ p_i²) C^{1/2} ζ)   in distribution,   C = Γ - (Γξ)(Γξ)ᵀ/τ²,   ζ ~ N(0, I).

What matters of the scores are the participation `P = E Σ p_i²` and the score error `Q = E (ĝ - τ)²`; both are integrals
of lib.partition. A sink adds its score as a third argument. Derived here, see book/exact_finite_prompt.
"""

from collections.abc import Iterator
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import as_array, as_float, is_concrete, public, require_count
from lib._namespace import (
    constant,
    exact,
    in_numpy,
    jitted,
    known,
    namespace,
    one_at_a_time,
    product,
    sigmoid,
    softmax,
    softplus,
    with_slopes,
)
from lib._types import AnyArray, Scalar, Scalars
from lib.attention import Attention, _tilt_of
from lib.measures import Gaussian
from lib.partition import (
    _DEFAULT_RESOLUTION,
    _LARGEST_LOG_LENGTH,
    _log_tilted_moments,
    log_survival,
)
from lib.random import _split, normal

LARGEST_TAU = 30.0
# The relative rounding of some 1e5 added positive terms whose exponents, a few hundred, are known to 1e-16.
_ROUNDING = 2e-13
# Below this τ² the two functions are continued along their tangent at zero, so that they have a derivative there.
_SMALLEST_TAU_SQUARED = 1e-7
# The largest score of a sink that `sink_statistics` takes.
_LARGEST_SINK = 1000.0
# With a sink: the smallest τ that is resolved; how far nodes y reach to the right of -b, and fine ones from there.
_SMALLEST_TAU, _RIGHT_OF_SINK, _FINE_ZONE = 1e-9, 4.0, 18.0
# Numbers below it may be 0: the participation of a head that a sink has switched off.
_UNDERFLOW = 1e-300


class _ScoreStatistics(eqx.Module):
    """The two numbers that decide the error of a finite Gaussian prompt."""

    participation: Float[AnyArray, "..."]
    score_error: Float[AnyArray, "..."]


@public
def participation(tau: Scalars, log_length: Scalars) -> Float[Array, "..."]:
    """Return the mean participation `P = E Σ p_i²`, p = softmax(τ g) of `L = exp(log_length)` normals g.

    From 1/L at τ = 0 to 1 where one token has all the weight; about $e^{τ²}/L$ for long prompts.

    Args:
      tau: standard deviation of the scores, |τ| ≤ 30.
      log_length: natural logarithm of the prompt length, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      P, with a relative error below 1e-11 (`quadrature_error` estimates it). NaN outside the domain. Known pairs take
      2 ms for each τ and 0.1 ms more for each length; traced ones 3 s to compile, and 1 ms each.

    Raises:
      ValueError: if float64 is off.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    return as_array(score_statistics(known(as_float(tau)) ** 2, log_length).participation)


@public
def score_error(tau: Scalars, log_length: Scalars) -> Float[Array, "..."]:
    """Return `Q = E (ĝ - τ)²`, $ĝ = Σ p_i g_i$, the mean square distance of the softmax's mean score from its limit τ.

    About $(1 + τ²) e^{τ²}/L$ for long prompts, 1/L at τ = 0, 1 + τ² at L = 1.

    Args:
      tau: standard deviation of the scores, |τ| ≤ 30.
      log_length: natural logarithm of the prompt length, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      Q, with a relative error below 1e-11 (`quadrature_error` estimates it). NaN outside the domain.

    Raises:
      ValueError: if float64 is off.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    return as_array(score_statistics(known(as_float(tau)) ** 2, log_length).score_error)


@public
def score_statistics(tau_squared: Scalars, log_length: Scalars) -> _ScoreStatistics:
    """Return the participation P and the score error Q as functions of τ², in which both are smooth.

    Both are even in τ, and have a finite derivative at τ² = 0. Known pairs are evaluated by NumPy, all lengths of one τ
    together. Traced pairs are evaluated one after the other, because the nodes of a single pair fit a processor's
    cache; forward derivatives are computed with the values, so that reverse mode keeps two numbers per pair.

    Args:
      tau_squared: variance of the scores, 0 ≤ τ² ≤ 900.
      log_length: natural logarithm of the prompt length, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      P and Q, each of the broadcast shape, with a relative error below 1e-11. NaN outside the domain.

    Raises:
      ValueError: if float64 is off.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    tau_squared, log_length = exact("lib.finite_prompt", tau_squared, log_length)
    if is_concrete(tau_squared, log_length):
        return _ScoreStatistics(*_tabulated(tau_squared, log_length))
    return _ScoreStatistics(*jnp.vectorize(_statistics)(tau_squared, log_length))


def _tabulated(tau_squared: Scalars, log_length: Scalars) -> Iterator[Float[Array, "..."]]:
    """Return P and Q of known pairs; all lengths of one τ share the nodes."""
    pairs = np.broadcast_arrays(tau_squared, log_length)
    tau_squared, log_length = (column.ravel() for column in pairs)
    values = np.full((2, tau_squared.size), np.nan)
    inside = _guaranteed(tau_squared, log_length)
    with np.errstate(all="ignore"):
        for each in np.unique(tau_squared[inside]):
            place = inside & (tau_squared == each)
            values[:, place] = _continued(each, log_length[place])
    return (as_array(column.reshape(pairs[0].shape)) for column in values)


class _SinkStatistics(eqx.Module):
    """The numbers that decide the mean output and the error of a finite Gaussian prompt with a sink."""

    sink_weight: Float[Array, "..."]
    participation: Float[Array, "..."]
    score_error: Float[Array, "..."]


@public
def sink_statistics(tau: Scalars, log_length: Scalars, sink: Scalars) -> _SinkStatistics:
    """Return `E p_0`, `P = E Σ_{i≥1} p_i²` and `Q = E (ĝ - τ)²` of a softmax over L scores τ g_i and one more score.

    The additional score b, the sink, has the weight $p_0 = e^b/(e^b + Σ e^{τg_i})$, and $ĝ = Σ_{i≥1} p_i g_i$. With the
    value 0 at the sink, tokens N(m, Γ) and ξ = Uz the mean output is `(1 - E p_0) V m + (1 - E p_0 - P) V Γ ξ`, where b
    is the sink's score less ⟨ξ, m⟩; for m = 0 the error is that of `output_error` with these P and Q.

    Args:
      tau: standard deviation of the scores, |τ| ≤ 30.
      log_length: natural logarithm of the number of tokens, 0 ≤ log_length ≤ 330.
      sink: score b of the sink, less the mean of the other scores, b ≤ 1000; -inf is no sink. The arrays broadcast.

    Returns:
      `sink_weight`, `participation` and `score_error`, each of the broadcast shape. The relative errors of the last
      two, down to 1e-300, and the absolute error of the first are below 1e-11 (`quadrature_error` estimates
      them). NaN outside the domain. Known triples take 2 ms each; traced ones 4 s to compile, and 2 ms each.

    Raises:
      ValueError: if float64 is off.

    Source: derived here, see book/sinks_and_dependent_tokens. Transformations: jit, vmap, grad.
    """
    triple = exact("lib.finite_prompt.sink_statistics", tau, log_length, sink)
    if is_concrete(*triple):
        return _SinkStatistics(*in_numpy(_sink_values, *triple))
    return _SinkStatistics(*jnp.vectorize(_sink_values)(*triple))


@public
def quadrature_error(tau: Scalars, log_length: Scalars, sink: Scalars | None = None) -> Float[Array, "..."]:
    """Return the relative accuracy of `participation` and `score_error`, the worse of the two.

    With a sink: the accuracy of `sink_statistics`, the worst of the absolute one of E p_0 and the relative ones of P
    and Q. It is twice the largest difference made by a finer step and by a longer reach of both trapezoids, plus the
    rounding of sums this long. Values are computed one after the other, also under `vmap`.

    Args:
      tau: standard deviation of the scores, |τ| ≤ 30.
      log_length: natural logarithm of the prompt length, 0 ≤ log_length ≤ 330; the arrays broadcast.
      sink: score of the sink, as for `sink_statistics`; None for a prompt without a sink.

    Returns:
      The error, of the broadcast shape. NaN outside the domain. About four times the cost of a value.

    Raises:
      ValueError: if float64 is off.

    Source: derived here, see book/exact_finite_prompt and book/sinks_and_dependent_tokens.
    Transformations: jit, vmap.
    """
    if sink is not None:
        triple = exact("lib.finite_prompt.quadrature_error", tau, log_length, sink)
        if is_concrete(*triple):
            return in_numpy(lambda *each: (_sink_resolution_error(*each),), *triple)[0]
        return jnp.vectorize(_sink_error_mapped)(*triple)
    tau, log_length = exact("lib.finite_prompt.quadrature_error", tau, log_length)
    if is_concrete(tau, log_length):
        return in_numpy(lambda *pair: (_resolution_error(*pair),), tau**2, log_length)[0]
    return jnp.vectorize(_resolution_error_mapped)(tau**2, log_length)


@public
def mean_output(
    params: Attention, gaussian: Gaussian, query: Float[Array, " q"], log_length: Scalar
) -> Float[Array, " e"]:
    """Return `E T[μ̂_L](z) = V m + (1 - P) V Γ U z`: the direction of linear attention, shrunk by the factor 1 - P.

    P depends on the query, so the mean is not linear in it: E ĝ = τ (1 - P), by Stein's identity, levels off.

    Args:
      params: the head.
      gaussian: the distribution N(m, Γ) of tokens.
      query: z, shape (q,).
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      The mean output, shape (e,). Accuracy as `participation`, with τ² = ⟨Uz, ΓUz⟩; NaN where τ > 30.

    Raises:
      ValueError: if float64 is off or shapes do not fit.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    at = _scores(params, gaussian, query)
    shrinkage = 1 - known(score_statistics(at.variance, log_length).participation)
    return as_array(known(params.value) @ (known(gaussian.mean) + shrinkage * at.drift))


@public
def output_error(
    params: Attention, gaussian: Gaussian, query: Float[Array, " q"], log_length: Scalar
) -> Float[Array, ""]:
    """Return `E ‖T[μ̂_L](z) - T[μ](z)‖² = (‖VΓξ‖²/τ²) Q + P (tr VΓVᵀ - ‖VΓξ‖²/τ²)`, at one query.

    Args:
      params: the head.
      gaussian: the distribution μ = N(m, Γ) of tokens.
      query: z, shape (q,).
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      The mean square error, summed over output coordinates, shape (). Accuracy as `score_error`, with τ² = ⟨Uz, ΓUz⟩;
      NaN where τ > 30.

    Raises:
      ValueError: if float64 is off or shapes do not fit.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    at = _scores(params, gaussian, query)
    value, cov = known(params.value), known(gaussian.cov)
    xp = namespace(value, cov, at.variance)
    statistics = jax.tree.map(known, score_statistics(at.variance, log_length))
    along = xp.sum((value @ at.drift) ** 2) / xp.where(at.variance > 0, at.variance, 1.0)
    total = xp.einsum("ij,jk,ik->", value, cov, value)
    return as_array(along * statistics.score_error + statistics.participation * (total - along))


@public
def sample_output(
    params: Attention, gaussian: Gaussian, query: Float[Array, " q"], n: int, *, key: PRNGKeyArray
) -> Float[Array, " e"]:
    """Return one draw of `T[μ̂_n](z)`, from n normal scores and one vector in place of n vectors.

    Equal in distribution to `attend(params, empirical(gaussian, n, key=key), query)`.

    Args:
      params: the head.
      gaussian: the distribution N(m, Γ) of tokens.
      query: z, shape (q,).
      n: the number of tokens, n ≥ 1; static under `jit`.
      key: JAX random key.

    Returns:
      The output, shape (e,). NumPy computes it if the arguments are known; under `jit` each n takes one or two seconds
      to compile.

    Raises:
      ValueError: if n is not a whole number ≥ 1, or shapes do not fit.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    n = require_count("sample_output", "n", n, "an empty prompt defines no probability measure.")
    score_key, rest_key = _split(key)
    at = _scores(params, gaussian, query)
    scores = normal(score_key, (n,), at.variance.dtype)
    rest, mean, value = map(known, (gaussian.sample(1, key=rest_key), gaussian.mean, params.value))
    xp = namespace(*at, scores, rest, mean, value)
    tau = xp.sqrt(at.variance)
    weights = softmax(tau * scores)
    direction = at.drift / xp.where(tau > 0, tau, 1.0)
    rest = rest[0] - mean
    # a draw of N(0, Γ) less its part along the score is a draw of N(0, C)
    rest = rest - direction * (at.tilt @ rest) / xp.where(tau > 0, tau, 1.0)
    return as_array(product(value, mean + direction * (weights @ scores) + xp.linalg.norm(weights) * rest))


@public
def rate_exponent(operator_norm: Scalars) -> Float[Array, "..."]:
    """Return the exponent β in `E‖T[μ̂_L] - T[μ]‖²_{L²(ν)} = L^{-β + o(1)}` for Gaussian tokens and queries.

    β = 1 for H² ≤ ½ and (√(1 + 4/H²) - 1)/2 beyond: the inverse golden ratio at H = 1, about 1/H² for large H. For H² <
    ½ this is a theorem, and L times the error has a finite limit (derived here, see book/concentration). For H²
    ≥ ½ it is a heuristic, which agrees with the exact theory (derived here, see book/sharp_rates).

    Args:
      operator_norm: $H = ‖Γ^{1/2} U Γ_q^{1/2}‖$ for tokens of covariance Γ and queries $N(0, Γ_q)$, H ≥ 0, any shape.

    Returns:
      β in (0, 1], of the same shape.

    Source: derived here, see book/sharp_rates. Transformations: jit, vmap, grad.
    """
    norm = known(as_float(operator_norm))
    xp, squared = namespace(norm), norm**2
    inverse = 1 / xp.maximum(squared, 0.5)
    # (√(1 + 4x) - 1)/2 without the difference, which has no digits left for large heads
    return as_array(xp.where(squared <= 0.5, 1.0, 2 * inverse / (1 + xp.sqrt(1 + 4 * inverse))), norm.dtype)


class QueryRay(eqx.Module):
    """Queries `τ · direction` of one head on Gaussian tokens, scaled so that their scores have standard deviation τ.

    The outputs of the infinite prompt lie on a straight line, `V m + τ · line` [BB26, Lemma 2.1].

    Attributes:
      params: the head.
      gaussian: the distribution N(m, Γ) of tokens.
      direction: the query whose scores have standard deviation 1, shape (q,).
    """

    params: Attention
    gaussian: Gaussian
    direction: Float[Array, " q"]

    @classmethod
    @public
    def through(cls, params: Attention, gaussian: Gaussian, query: Float[Array, " q"]) -> "QueryRay":
        """Return the ray through a query.

        Args:
          params: the head.
          gaussian: the distribution N(m, Γ) of tokens.
          query: z, shape (q,), with ⟨Uz, ΓUz⟩ > 0.

        Returns:
          The ray, whose direction is z divided by the standard deviation of its scores.

        Raises:
          ValueError: if all tokens have the same score.

        Transformations: jit, vmap, grad.
        """
        variance = _scores(params, gaussian, query).variance
        if is_concrete(variance) and not variance > 0:
            raise ValueError(
                "`QueryRay.through(query=...)` must give scores ⟨Uz, z'⟩ that differ between tokens, because queries "
                f"are measured in their standard deviation. Got a variance of {variance}."
            )
        return cls(params, gaussian, as_array(known(as_float(query)) / namespace(variance).sqrt(variance)))

    @public
    def queries(self, taus: Scalars | list[float]) -> Float[Array, "*n q"]:
        """Return the queries `τ · direction`.

        Args:
          taus: standard deviations of the scores, any shape.

        Returns:
          One query per τ, shape (..., q).

        Transformations: jit, vmap, grad.
        """
        return as_array(known(as_float(taus))[..., None] * known(self.direction))

    @property
    def line(self) -> Float[Array, " e"]:
        """`V Γ U direction`, by which the infinite prompt's output moves per unit of τ."""
        return as_array(product(self.params.value, _scores(self.params, self.gaussian, self.direction).drift))

    @public
    def read(self, outputs: Float[Array, "*n e"]) -> Float[Array, "*n"]:
        """Return the coordinates of outputs along the line, in units of τ: the infinite prompt's output at τ gives τ.

        Args:
          outputs: outputs of the head, shape (..., e).

        Returns:
          Coordinates of the orthogonal projection to the line, shape (...).

        Transformations: jit, vmap, grad.
        """
        line, start = known(self.line), product(self.params.value, self.gaussian.mean)
        return as_array(product(known(outputs) - start, line / (line @ line)))


class _Scores(NamedTuple):
    """Scores ⟨ξ, z_i⟩ of Gaussian tokens: the tilt ξ = Uz, the drift Γξ, and their variance τ² = ⟨ξ, Γξ⟩."""

    tilt: Float[AnyArray, " d"]
    drift: Float[AnyArray, " d"]
    variance: Float[AnyArray, ""]


def _scores(params: Attention, gaussian: Gaussian, query: Float[Array, " q"]) -> _Scores:
    tilt, cov = known(_tilt_of(params, gaussian, query)), known(gaussian.cov)
    drift = cov @ tilt
    return _Scores(tilt, drift, namespace(tilt, cov).maximum(tilt @ drift, 0.0))


def _continued(tau_squared, log_length):
    """Continue the integrals to τ² = 0 by their slopes there, (L - 1)/L² for P and (2L - 1)/L² for Q."""
    xp = namespace(tau_squared, log_length)
    inside = xp.maximum(tau_squared, _SMALLEST_TAU_SQUARED)
    short_of = tau_squared - inside
    inverse = xp.exp(-log_length)
    slopes = (inverse - inverse**2, 2 * inverse - inverse**2)
    values = zip(_integrals(inside, log_length, _DEFAULT_RESOLUTION), slopes, strict=True)
    guaranteed = _guaranteed(tau_squared, log_length)
    return tuple(xp.where(guaranteed, value + short_of * slope, xp.nan) for value, slope in values)


_statistics = one_at_a_time(_continued, with_slopes(_continued, jax.jacfwd))


def _resolution_error(tau_squared, log_length):
    xp = namespace(tau_squared, log_length)
    inside = xp.maximum(tau_squared, _SMALLEST_TAU_SQUARED)
    first, *others = (xp.stack(_integrals(inside, log_length, each)) for each in _DEFAULT_RESOLUTION._refinements)
    change = xp.max(xp.abs(xp.stack(others) / first - 1))
    return xp.where(_guaranteed(tau_squared, log_length), 2 * change + _ROUNDING, xp.nan)


_resolution_error_mapped = jax.custom_batching.sequential_vmap(_resolution_error)


def _guaranteed(tau_squared, log_length, sink=-np.inf):
    inside = (tau_squared >= 0) & (tau_squared <= LARGEST_TAU**2) & (sink <= _LARGEST_SINK)
    return inside & (log_length >= 0) & (log_length <= _LARGEST_LOG_LENGTH)


@jitted(static=(2,))
def _integrals(tau_squared, log_length, resolution):
    """`P = L ∫ b φ^{L-1} dy` and `Q = L ∫ c φ^{L-1} dy + L(L-1) τ² ∫ b² φ^{L-2} dy`, every term positive.

    A vector of lengths shares the nodes.
    """
    xp = namespace(tau_squared, log_length)
    tau = xp.sqrt(tau_squared)
    place = resolution._shared_levels if np.ndim(log_length) else resolution.levels
    y, spacing = place(tau, log_length)
    log_length = xp.expand_dims(log_length, -1)
    log_phi = log_survival(y, tau, resolution=resolution)
    log_b, log_c = _log_tilted_moments(2, y, tau, resolution=resolution)
    others = xp.expm1(log_length)
    diagonal = xp.exp(log_length + others * log_phi + log_b)
    squares = xp.exp(log_length + others * log_phi + log_c)
    pairs = -xp.expm1(-log_length) * tau_squared * xp.exp(2 * log_length + (others - 1) * log_phi + 2 * log_b)
    return spacing * xp.sum(diagonal, axis=-1), spacing * xp.sum(squares + pairs, axis=-1)


def _sink_values(tau, log_length, sink):
    guaranteed = _guaranteed(tau**2, log_length, sink)
    values = _sink_integrals(tau, log_length, sink, _DEFAULT_RESOLUTION)
    return tuple(namespace(value).where(guaranteed, value, np.nan) for value in values)


def _sink_resolution_error(tau, log_length, sink):
    xp = namespace(tau, log_length, sink)
    first, *others = (
        xp.stack(_sink_integrals(tau, log_length, sink, each)) for each in _DEFAULT_RESOLUTION._refinements
    )
    size = xp.concatenate([xp.ones(1), xp.maximum(first[1:], _UNDERFLOW)])
    change = xp.max(xp.abs(xp.stack(others) - first) / size)
    return xp.where(_guaranteed(tau**2, log_length, sink), 2 * change + _ROUNDING, xp.nan)


_sink_error_mapped = jax.custom_batching.sequential_vmap(_sink_resolution_error)


@jitted(static=(3,))
def _sink_integrals(tau, log_length, sink, resolution):
    """The integrals of P and Q with the sink's factor `k = exp(-e^{y+b})`, and those of its weight; all positive.

    Without a sink they are `_integrals`, which is smooth in τ² at 0 and shares nodes between lengths.
    """
    xp = namespace(tau, log_length, sink)
    tau = xp.maximum(xp.abs(tau), _SMALLEST_TAU)
    y, spacing = _sink_levels(tau, log_length, sink, resolution)
    log_phi = log_survival(y, tau, resolution=resolution)
    log_b, log_c = _log_tilted_moments(2, y, tau, resolution=resolution)
    own = xp.minimum(y + sink, _RIGHT_OF_SINK + 1.0)
    log_k = xp.log(spacing) - xp.exp(own)
    others = xp.expm1(log_length)
    log_all = log_k + (others + 1) * log_phi
    log_rest = log_k + log_length + others * log_phi
    pairs = -xp.expm1(-log_length) * tau**2 * xp.exp(log_rest - log_phi + log_length + 2 * log_b)
    with_sink = tau**2 * (2 * xp.exp(log_rest + own + log_b) + xp.exp(log_all + 2 * own))
    participation = xp.sum(xp.exp(log_rest + log_b))
    score_error = xp.sum(xp.exp(log_rest + log_c) + pairs + with_sink)
    return xp.sum(xp.exp(log_all + own)), participation, score_error


def _sink_levels(tau, log_length, sink, resolution):
    """Return nodes of y and their spacings: as far as `levels`, left of the sink's score, and fine near the right end.

    Where the sink's factor ends the range early, the range begins as much earlier: the logarithm of a token's part is
    concave in y, so it has fallen as far there.
    """
    xp = namespace(tau, log_length, sink)
    y, coarse = resolution.levels(tau, log_length)
    (sink,) = constant(xp.asarray(sink, float))
    top = xp.minimum(y[-1], _RIGHT_OF_SINK - sink)
    # t counts fine steps from the right end; the spacing grows to that of `levels` beyond the zone
    fine = 0.2 * _DEFAULT_RESOLUTION.count / resolution.count
    zone, blend = _FINE_ZONE / fine, 4.0 * _DEFAULT_RESOLUTION.count / resolution.count
    t = xp.arange(resolution.count + int(zone) + 20)
    growth = xp.maximum(coarse - fine, 0.0)
    distance = fine * t + growth * blend * softplus((t - zone) / blend)
    return top - distance, fine + growth * sigmoid((t - zone) / blend)


@public
def measured_statistics(scores: Float[AnyArray, "... L"]) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return τ and Σ pᵢ² of measured scores, for each query: what `participation` compares with a Gaussian prompt.

    τ is the standard deviation of the scores over the tokens of the prompt, and p is their softmax. For the scores of a
    trained model, a layer or a head at a time, `participation(τ, ln L)` is the mean of Σ pᵢ² over Gaussian prompts.
    Average over many queries: at τ = 2 and L = 256 the standard deviation of Σ pᵢ² is as large as its mean. On prompts
    of a few dozen tokens `participation` of a measured τ is some percent too small: τ is measured on the same tokens.

    Args:
      scores: the scores of each query with the L ≥ 1 tokens of its prompt, scaled as in the model, shape (..., L);
        without masked tokens; a causal mask needs one call per length.

    Returns:
      τ and the participation in [1/L, 1], each of shape (...), in the precision of the scores.

    Raises:
      ValueError: if there is no token.

    Transformations: jit, vmap, grad.
    """
    xp, scores = namespace(scores), as_float(scores)
    if not scores.shape[-1]:
        raise ValueError(
            "`measured_statistics(scores=...)` needs at least one token along the last axis: an empty prompt has no "
            f"weights. Got shape {scores.shape}."
        )
    # NumPy computes in double precision, JAX in that of the scores
    tau, square = _spread_and_participation(np.asarray(scores, np.float64) if xp is np else scores)
    return as_array(tau, scores.dtype), as_array(square, scores.dtype)


@jitted()
def _spread_and_participation(scores):
    xp = namespace(scores)
    centred = scores - xp.mean(scores, axis=-1, keepdims=True)
    weights = softmax(centred)
    return xp.sqrt(xp.mean(centred**2, axis=-1)), xp.sum(weights**2, axis=-1)
