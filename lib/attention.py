"""Attention is the gradient of a log-moment-generating function: `T[μ](z) = V ∇Λ_μ(U z)`.

[BB26] writes softmax attention as an operator on measures, `T[μ](z) = ∫ e^⟨Uz,z'⟩ V z' dμ / ∫ e^⟨Uz,z'⟩ dμ`;
the quotient is `V` times the gradient of `Λ_μ`. One definition then covers the prompt in hand (an `Empirical`),
the infinite prompt (its law), and everything between.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import as_float, require_count, require_finite
from lib.measures import Measure, tilted_cov, tilted_mean


class Attention(eqx.Module):
    """One head: `bilinear` is U = KᵀQ of shape (d, d), `value` is V of shape (e, d). No 1/√d is applied."""

    bilinear: Float[Array, "d q"] = eqx.field(converter=as_float)
    value: Float[Array, "e d"] = eqx.field(converter=as_float)

    def __check_init__(self):
        """Both act on tokens of the same dimension."""
        if self.bilinear.ndim != 2 or self.value.ndim != 2 or self.bilinear.shape[0] != self.value.shape[1]:
            raise ValueError(
                "`Attention(bilinear, value)` needs U of shape (d, d) and V of shape (e, d) with one d, because "
                f"scores ⟨Uz, z'⟩ weigh values V z'. Got shapes {self.bilinear.shape} and {self.value.shape}."
            )

        require_finite("Attention", "bilinear", self.bilinear, "scores ⟨Uz, z'⟩ are numbers.")
        require_finite("Attention", "value", self.value, "outputs V z' are vectors.")

    @classmethod
    def from_kqv(cls, key: Float[Array, "p d"], query: Float[Array, "p d"], value: Float[Array, "e d"]) -> "Attention":
        """The head with key, query and value matrices K, Q, V: `⟨K z', Q z⟩ = ⟨z', U z⟩` with U = KᵀQ."""
        key, query = as_float(key), as_float(query)
        if key.ndim != 2 or query.ndim != 2 or key.shape[0] != query.shape[0]:
            raise ValueError(
                "`Attention.from_kqv(key, query, value)` needs K and Q with the same number of rows, because "
                f"⟨K z', Q z⟩ pairs them. Got shapes {key.shape} and {query.shape}."
            )
        return cls(key.T @ query, value)


def attend(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, " e"]:
    """`V ∇Λ_μ(U z)`: softmax attention of the prompt `measure` at `query` ([BB26], written for any measure).

    On an `Empirical` this is textbook softmax; on a `Gaussian` it is affine in the query [BB26, Lemma 2.1].
    Raises where `Λ_μ(U z)` is not finite.
    """
    return params.value @ tilted_mean(measure, tilt_of(params, measure, query))


def linear_attend(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, " e"]:
    """`V E_μ[z' z'ᵀ] U z`: linear attention, the second moment in place of the tilted mean [BB26].

    The second moment is never formed: `E[z' z'ᵀ] ξ = ∇²Λ(0) ξ + ⟨∇Λ(0), ξ⟩ ∇Λ(0)`.
    """
    tilt = tilt_of(params, measure, query)
    mean, cov_tilt = jax.jvp(partial(tilted_mean, measure), (jnp.zeros_like(tilt),), (tilt,))
    return params.value @ (cov_tilt + (mean @ tilt) * mean)


def fluctuation(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, "e e"]:
    """`lim_L L·Cov T[μ̂_L](z)`, the size of finite-prompt noise at a fixed query (derived here, delta method).

    `V e^{Λ(2ξ)-2Λ(ξ)} (∇²Λ(2ξ) + g gᵀ) Vᵀ` with `g = ∇Λ(2ξ) - ∇Λ(ξ)`, ξ = Uz. It needs 2ξ in the domain of
    `Λ`, where the weights have a second moment, and raises elsewhere: there L·Cov grows without bound.
    """
    tilt = tilt_of(params, measure, query)
    shift = tilted_mean(measure, 2 * tilt) - tilted_mean(measure, tilt)
    cov = _mean_square_weight(measure, tilt) * (tilted_cov(measure, 2 * tilt) + jnp.outer(shift, shift))
    return params.value @ cov @ params.value.T


def mean_square_weight(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """`E w² = e^{Λ(2ξ)-2Λ(ξ)}` of a token's weight `w = e^{⟨ξ,z⟩-Λ(ξ)}`, whose mean is 1. Derived here.

    Of a prompt of L tokens w = L p with p its softmax weights: this is `L Σ p²`, between 1 and L, and L over it the
    number of tokens that matter. `+inf` where 2ξ is outside the domain of `Λ`.
    """
    return _mean_square_weight(measure, tilt_of(params, measure, query))


def _mean_square_weight(measure: Measure, tilt: Float[Array, " d"]) -> Float[Array, ""]:
    return jnp.exp(measure.log_mgf(2 * tilt) - 2 * measure.log_mgf(tilt))


def stream_attend(
    params: Attention,
    measure: Measure,
    query: Float[Array, " q"],
    n: int,
    *,
    key: PRNGKeyArray,
    block: int = 65_536,
) -> Float[Array, " e"]:
    """Attention over a prompt of `n` fresh tokens of `measure`, in memory O(block · d): online softmax.

    Block j is `measure.sample(block, key=fold_in(key, j))`, the last one cut to fit, so the answer is that of
    `attend` on those tokens up to rounding, whatever `n`. `n` and `block` are static.
    """
    n = require_count("stream_attend", "n", n, "an empty prompt defines no probability measure.")
    block = require_count("stream_attend", "block", block, "tokens are drawn a block at a time.")
    return params.value @ _stream_mean(measure, tilt_of(params, measure, query), n, key, block)


@eqx.filter_jit
def _stream_mean(
    measure: Measure, tilt: Float[Array, " d"], n: int, key: PRNGKeyArray, block: int
) -> Float[Array, " d"]:
    """The softmax-weighted mean of the tokens, with the running log of the weights' sum as the only other state."""
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


def tilt_of(params: Attention, measure: Measure, query: Float[Array, " q"]) -> Float[Array, " d"]:
    """`ξ = U z`, the tilt a query puts on the prompt's law; raises where shapes do not fit."""
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
    return params.bilinear @ query
