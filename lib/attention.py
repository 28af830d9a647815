"""Attention is the gradient of a log-moment-generating function: `T[μ](z) = V ∇Λ_μ(U z)`.

[BB26] writes softmax attention as an operator on measures, `T[μ](z) = ∫ e^⟨Uz,z'⟩ V z' dμ / ∫ e^⟨Uz,z'⟩ dμ`; the
quotient is `V` times the gradient of `Λ_μ`. One definition then covers a given prompt (an `Empirical`), the infinite
prompt (the distribution of its tokens), and everything between.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import as_array, as_float, is_concrete, public, require_count, require_finite
from lib._namespace import jitted, known, namespace, product, softmax
from lib._types import AnyArray, Scalar
from lib.measures import Gaussian, Measure, _derivatives, _inside_domain, tilted_mean
from lib.random import _fold_in

# Up to this dimension NumPy forms the second moment of linear attention; beyond, a compiled program multiplies by it.
_MOST_FORMED = 64


class Attention(eqx.Module):
    """One attention head, `T[μ](z) = V ∇Λ_μ(U z)`; no factor 1/√d is applied to scores.

    Args:
      bilinear: U = KᵀQ, shape (d, d), or (d, q) for queries of another dimension than tokens.
      value: V, shape (e, d).

    Raises:
      ValueError: if U and V act on tokens of different dimensions, or an entry is not finite.
    """

    bilinear: Float[Array, "d q"] = eqx.field(converter=as_float)
    value: Float[Array, "e d"] = eqx.field(converter=as_float)

    def __check_init__(self):
        """Check that both matrices act on tokens of one dimension and are finite."""
        if self.bilinear.ndim != 2 or self.value.ndim != 2 or self.bilinear.shape[0] != self.value.shape[1]:
            raise ValueError(
                "`Attention(bilinear, value)` needs U of shape (d, d) and V of shape (e, d) with one d, because "
                f"scores ⟨Uz, z'⟩ weigh values V z'. Got shapes {self.bilinear.shape} and {self.value.shape}."
            )

        require_finite("Attention", "bilinear", self.bilinear, "scores ⟨Uz, z'⟩ are numbers.")
        require_finite("Attention", "value", self.value, "outputs V z' are vectors.")

    @classmethod
    @public
    def from_kqv(cls, key: Float[Array, "p d"], query: Float[Array, "p d"], value: Float[Array, "e d"]) -> "Attention":
        """Return the head with key, query and value matrices K, Q, V: `⟨K z', Q z⟩ = ⟨z', U z⟩` with U = KᵀQ.

        Args:
          key: K, shape (p, d).
          query: Q, shape (p, d).
          value: V, shape (e, d).

        Returns:
          The head, with `bilinear` of shape (d, d).

        Raises:
          ValueError: if K and Q do not have the same number of rows.

        Transformations: jit, vmap, grad.
        """
        key, query = known(as_float(key)), known(as_float(query))
        if key.ndim != 2 or query.ndim != 2 or key.shape[0] != query.shape[0]:
            raise ValueError(
                "`Attention.from_kqv(key, query, value)` needs K and Q with the same number of rows, because "
                f"⟨K z', Q z⟩ pairs them. Got shapes {key.shape} and {query.shape}."
            )
        return cls(product(key.T, query), value)


@public
def attend(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, " e"]:
    """Return `T[μ](z) = V ∇Λ_μ(U z)`, softmax attention of the prompt μ at the query z.

    On an `Empirical` this is textbook softmax attention; on a `Gaussian` it is affine in the query [BB26, Lemma 2.1].

    Args:
      params: the head.
      measure: the prompt μ, tokens in $R^d$.
      query: z, shape (q,), the size of U's columns; use `jax.vmap` for several queries.

    Returns:
      The output, shape (e,).

    Raises:
      ValueError: if shapes do not fit, or Λ_μ(U z) is not finite. Inside `jit` the latter is a runtime error.

    Source: [BB26], for any measure. Transformations: jit, vmap, grad.
    """
    return as_array(product(params.value, tilted_mean(measure, _tilt_of(params, measure, query))))


@public
def linear_attend(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, " e"]:
    """Return `V E_μ[z' z'ᵀ] U z`, linear attention: the second moment replaces the tilted mean.

    The product of the second moment and ξ = Uz is `∇²Λ(0) ξ + ⟨∇Λ(0), ξ⟩ ∇Λ(0)`. In more than 64 dimensions the second
    moment is not formed.

    Args:
      params: the head.
      measure: the prompt μ, tokens in $R^d$.
      query: z, shape (q,).

    Returns:
      The output, shape (e,).

    Raises:
      ValueError: if shapes do not fit.

    Source: [BB26]. Transformations: jit, vmap, grad.
    """
    tilt = known(_tilt_of(params, measure, query))
    if measure.dimension > _MOST_FORMED or not is_concrete(params.value, tilt, *jax.tree.leaves(measure)):
        return _linear_output(params, measure, tilt)
    _, mean, cov = _derivatives(measure, np.zeros_like(tilt), 2)
    return as_array(product(params.value, cov @ tilt + (mean @ tilt) * mean))


@eqx.filter_jit
def _linear_output(params: Attention, measure: Measure, tilt: Float[AnyArray, " d"]) -> Float[Array, " e"]:
    mean, cov_tilt = jax.jvp(jax.grad(measure.log_mgf), (jnp.zeros_like(tilt),), (tilt,))
    return params.value @ (cov_tilt + (mean @ tilt) * mean)


@public
def fluctuation(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, "e e"]:
    """Return `lim_L L·Cov T[μ̂_L](z)`, the size of finite-prompt noise at a fixed query.

    It is `V e^{Λ(2ξ)-2Λ(ξ)} (∇²Λ(2ξ) + g gᵀ) Vᵀ` with `g = ∇Λ(2ξ) - ∇Λ(ξ)` and ξ = Uz. It needs 2ξ in the domain of Λ,
    where the weights have a second moment; outside, L·Cov grows without bound.

    Args:
      params: the head.
      measure: the distribution μ of the prompt's independent tokens.
      query: z, shape (q,).

    Returns:
      The limit, a covariance of shape (e, e). An entry that is too large for its type is ±inf.

    Raises:
      ValueError: if shapes do not fit, or Λ(2ξ) is not finite. Inside `jit` the latter is a runtime error.

    Source: derived here (delta method). Transformations: jit, vmap, grad.
    """
    tilt = known(_tilt_of(params, measure, query))
    single, double = _derivatives(measure, tilt, 1), _derivatives(measure, 2 * tilt, 2)
    # Λ(ξ) is finite where Λ(2ξ) is
    return _inside_domain(_by_delta_method(known(params.value), single, double), double[0], 2 * tilt)


@jitted()
def _by_delta_method(value: Float[AnyArray, "e d"], single: Sequence, double: Sequence) -> Float[AnyArray, "e e"]:
    """Return `fluctuation` from Λ and its first derivative at ξ, and Λ and its first two derivatives at 2ξ."""
    xp = namespace(value, *single, *double)
    with np.errstate(all="ignore"):
        shift = double[1] - single[1]
        cov = value @ (double[2] + xp.outer(shift, shift)) @ value.T
        scale = _mean_square_weight(single[0], double[0])
        zero = xp.isinf(scale) & (cov == 0)  # an entry that is 0 stays 0 where the scale overflows
        limit = xp.where(zero, 0.0, cov * xp.where(zero, 1.0, scale))
    return limit.astype(jnp.result_type(value, double[2]))


@public
def dependent_fluctuation(
    params: Attention, gaussian: Gaussian, query: Float[AnyArray, " q"], correlations: Float[AnyArray, " lags"]
) -> Float[Array, "e e"]:
    """Return `lim_L L·Cov T[μ̂_L](z)` for a stationary prompt of dependent Gaussian tokens.

    Tokens have the distribution N(m, Γ), and `Cov(z_i, z_{i+k}) = r_k Γ`. The limit is
    `Σ_k e^{r_k τ²} V (r_k Γ + r_k² Γξξᵀ Γ) Vᵀ` over all lags k of both signs, with `r_0 = 1`, `ξ = Uz` and
    `τ² = ⟨ξ, Γξ⟩`. Without correlations it is `fluctuation`.

    Args:
      params: the head.
      gaussian: the distribution N(m, Γ) of one token; the limit does not depend on m.
      query: z, shape (q,).
      correlations: r_1, ..., r_K, shape (K,), in [-1, 1]; later ones are 0. Cutting a sequence off leaves out
        its tail; that the sequence belongs to a stationary process is not checked.

    Returns:
      The limit, a covariance of shape (e, e), exact up to rounding for τ² ≤ 700; beyond, exponentials overflow.

    Raises:
      ValueError: if shapes do not fit, or a concrete correlation is not in [-1, 1].

    Source: derived here, see book/sinks_and_dependent_tokens. Transformations: jit, vmap, grad.
    """
    tilt = _tilt_of(params, gaussian, query)
    correlations = as_float(correlations)
    if correlations.ndim != 1 or (is_concrete(correlations) and not (np.abs(np.asarray(correlations)) <= 1).all()):
        raise ValueError(
            "`dependent_fluctuation(correlations=...)` must be a vector r_1, ..., r_K of numbers in [-1, 1], one for "
            f"each lag, because they are correlations of tokens. Got {np.asarray(correlations)}."
        )
    value, cov, tilt, correlations = map(known, (params.value, gaussian.cov, tilt, correlations))
    xp = namespace(value, cov, tilt, correlations)
    drift = cov @ tilt
    lags = xp.concatenate([xp.ones(1, correlations.dtype), correlations])
    # both signs of each lag
    scales = lags * xp.exp(lags * (tilt @ drift)) * xp.asarray([1.0] + [2.0] * correlations.size, lags.dtype)
    along = value @ drift
    across = value @ cov @ value.T
    limit = xp.sum(scales) * across + xp.sum(scales * lags) * xp.outer(along, along)
    return as_array(limit, jnp.result_type(params.value, gaussian.cov))


def _mean_square_weight(single: Scalar, double: Scalar) -> Scalar:
    """Return `E w² = e^{Λ(2ξ)-2Λ(ξ)}` of a token's weight `w = e^{⟨ξ,z⟩-Λ(ξ)}`: for a prompt of L tokens `L Σ p²`."""
    xp = namespace(single, double)
    single = xp.where(xp.isinf(double), 0.0, single)  # infinite only where `double` is
    return xp.exp(double - 2 * single)


@public
def stream_attend(
    params: Attention, measure: Measure, query: Float[Array, " q"], n: int, *, key: PRNGKeyArray, block: int = 65_536
) -> Float[Array, " e"]:
    """Return `T[μ̂_n](z)` of a prompt of n fresh tokens of μ, in memory O(block · d), by online softmax.

    Block j is `measure.sample(block, key=fold_in(key, j))`, and the last block is cut to fit. The output is that of
    `attend` on these tokens up to rounding, for any `n`.

    Args:
      params: the head.
      measure: the distribution μ of tokens.
      query: z, shape (q,).
      n: the number of tokens, n ≥ 1; static under `jit`.
      key: JAX random key.
      block: the number of tokens in memory at once, at least 1; static under `jit`. Blocks follow one after the other.

    Returns:
      The output, shape (e,). NumPy computes it if the arguments are known and one block is enough; otherwise each n
      and `block` takes a second to compile.

    Raises:
      ValueError: if shapes do not fit, or `n` or `block` is not a whole number ≥ 1.

    Transformations: jit, vmap, grad.
    """
    n = require_count("stream_attend", "n", n, "an empty prompt defines no probability measure.")
    block = require_count("stream_attend", "block", block, "tokens are drawn a block at a time.")
    tilt = _tilt_of(params, measure, query)
    if n <= block and is_concrete(jr.key_data(key), tilt, *jax.tree.leaves(measure)):
        tokens = known(measure.sample(block, key=_fold_in(key, 0)))[:n]
        mean = (softmax(tokens @ known(tilt)) @ tokens).astype(tilt.dtype)
    else:
        mean = _stream_mean(measure, tilt, n, key, block)
    return as_array(product(params.value, mean))


@eqx.filter_jit
def _stream_mean(
    measure: Measure, tilt: Float[Array, " d"], n: int, key: PRNGKeyArray, block: int
) -> Float[Array, " d"]:
    """Return the softmax-weighted mean of the tokens; the only other state is the running log of the weights' sum."""
    blocks, rest = divmod(n, block)

    def absorb(j, state, size=block):
        log_weight, mean = state
        tokens = measure.sample(block, key=jr.fold_in(key, j))[:size]
        scores = tokens @ tilt
        block_log_weight = logsumexp(scores)
        total = jnp.logaddexp(log_weight, block_log_weight)
        block_mean = jnp.exp(scores - block_log_weight) @ tokens
        return total, jnp.exp(log_weight - total) * mean + jnp.exp(block_log_weight - total) * block_mean

    state = (jnp.asarray(-jnp.inf, tilt.dtype), jnp.zeros_like(tilt))
    state = jax.lax.fori_loop(0, blocks, absorb, state)
    if rest:
        state = absorb(blocks, state, rest)
    return state[1]


@public
def _tilt_of(params: Attention, measure: Measure, query: Float[AnyArray, " q"]) -> Float[Array, " d"]:
    """Return `ξ = U z`, the tilt that a query puts on the distribution of tokens."""
    if jnp.shape(query) != params.bilinear.shape[1:]:
        raise ValueError(
            f"`query` must be a vector U = `bilinear` of shape {params.bilinear.shape} can act on. "
            f"Got shape {jnp.shape(query)}; for many queries use `jax.vmap`."
        )
    if (d := measure.dimension) != params.value.shape[1]:
        raise ValueError(
            f"`params` acts on tokens of dimension {params.value.shape[1]}, `measure` has tokens of dimension {d}: "
            "they must agree, because scores pair U z with tokens."
        )
    query = as_float(query)
    require_finite("attend", "query", query, "a query is a point of R^d.")
    return as_array(product(params.bilinear, query))
