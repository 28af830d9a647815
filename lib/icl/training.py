"""Training on fresh prompts: the batch loss of in-context regression.

A step of stochastic gradient descent needs one unbiased gradient of the risk. Plain sampling draws L tokens of
$R^{d+1}$; collapsed sampling has the same distribution and draws 2L normals and two vectors. Both are values of the
argument `sampling`.
"""

import abc
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, UInt

from lib._checks import public, require_count
from lib.attention import Attention
from lib.icl.regression import LinearRegression
from lib.measures import _constant_covariance_root

# A pooling: it maps scores and values of the tokens to the output ŷ.
_Pool = Callable[[Float[Array, " L"], Float[Array, " L"]], Float[Array, ""]]


@public
def softmax_pool(scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
    """Return `Σ p_i r_i` with p = softmax(s).

    Args:
      scores: s, shape (L,).
      values: r, shape (L,).

    Returns:
      The output, shape ().

    Transformations: jit, vmap, grad.
    """
    return jax.nn.softmax(scores) @ values


@public
def linear_pool(scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
    """Return `(1/L) Σ s_i r_i`, linear attention.

    Args:
      scores: s, shape (L,).
      values: r, shape (L,).

    Returns:
      The output, shape ().

    Transformations: jit, vmap, grad.
    """
    return scores @ values / scores.size


class _Sampling(eqx.Module):
    """A way to draw a fresh prompt, in coordinates in which its L tokens are standard normals of $R^e$."""

    @abc.abstractmethod
    def normals(self, length: int, size: int) -> int:
        """Return how many standard normals one prompt needs."""

    @abc.abstractmethod
    def output(
        self, pool: _Pool, tilt: Float[Array, " e"], value: Float[Array, " e"], normals: Float[Array, " n"]
    ) -> Float[Array, ""]:
        """Return the output at scores $⟨t, n_i⟩$ and values $⟨v, n_i⟩$; training uses its derivatives in (t, v)."""


class _Plain(_Sampling):
    """Draw all L tokens."""

    def normals(self, length: int, size: int) -> int:
        """Return L · e."""
        return length * size

    @public
    def output(
        self, pool: _Pool, tilt: Float[Array, " e"], value: Float[Array, " e"], normals: Float[Array, " n"]
    ) -> Float[Array, ""]:
        """Return the pooled output of the tokens."""
        tokens = normals.reshape(-1, tilt.size)
        return pool(tokens @ tilt, tokens @ value)


class _Collapsed(_Sampling):
    """Draw only what the output and its gradient depend on: the same distribution from 2L normals and two vectors."""

    def normals(self, length: int, size: int) -> int:
        """Return 2L + 2e, two normals per token and two vectors."""
        return 2 * length + 2 * size

    @public
    def output(
        self, pool: _Pool, tilt: Float[Array, " e"], value: Float[Array, " e"], normals: Float[Array, " n"]
    ) -> Float[Array, ""]:
        """Return the output with a gradient that is drawn with it, and is not the derivative of the value."""
        t, v = jax.lax.stop_gradient((tilt, value))
        tau = _norm(t)
        f1 = t * _inverse(tau)
        along = _dot(v, f1)
        across = v - along * f1
        rho = _norm(across)
        f2 = across * _inverse(rho)

        rest, g, h = jnp.split(normals, (2 * t.size, t.size + normals.size // 2))
        output, (by_score, by_value) = jax.value_and_grad(pool, (0, 1))(tau * g, along * g + rho * h)
        xi1, xi2 = (xi - f1 * _dot(f1, xi) - f2 * _dot(f2, xi) for xi in jnp.split(rest, 2))
        spread = _norm(by_value)
        shared = _dot(by_score, by_value) * _inverse(spread)
        # the part of ∂ŷ/∂t that is drawn independently: its sign does not matter
        own = jnp.sqrt(jnp.maximum(_dot(by_score, by_score) - shared**2, 0.0))
        by_v = f1 * _dot(by_value, g) + f2 * _dot(by_value, h) + spread * xi1
        by_t = f1 * _dot(by_score, g) + f2 * _dot(by_score, h) + shared * xi1 + own * xi2
        # the added terms are zero but carry the gradient
        return output + _dot(by_t, tilt - t) + _dot(by_v, value - v)


plain, collapsed = _Plain(), _Collapsed()


def _dot(a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sum(a * b)  # under `vmap` XLA fuses this with its neighbours, a batched product of matrices it does not


def _norm(a: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sqrt(_dot(a, a))


def _inverse(scale: Float[Array, ""]) -> Float[Array, ""]:
    """Return `1/scale`, or 0 where scale is 0."""
    return jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1.0), 0.0)


@public
def prompt_loss(
    task: LinearRegression,
    length: int,
    *,
    batch: int,
    head: Callable[[Any], Attention] = lambda params: params,
    pool: _Pool = softmax_pool,
    sampling: _Sampling = collapsed,
    weight: float = 0.5,
) -> Callable[[Any, PRNGKeyArray], Float[Array, ""]]:
    """Return the loss of a fresh batch as a function of parameters and a random key.

    It computes in the precision of the parameters.

    Args:
      task: the distribution of prompts; concrete, not traced.
      length: the prompt length L, at least 1.
      batch: number of prompts, at least 1.
      head: maps the parameters to a head.
      pool: maps scores and values to an output, `softmax_pool` or `linear_pool`.
      sampling: `collapsed` or `plain`.
      weight: factor of the mean square error: ½ as in [BB26], or 1 as in the published code.

    Returns:
      A function of parameters and a random key, `weight · mean (ŷ - y)²`: an unbiased estimate of the risk, with an
      unbiased gradient.

    Raises:
      ValueError: if a count is not a whole number ≥ 1.

    Transformations: jit, vmap, grad.
    """
    length = require_count("prompt_loss", "length", length, "an empty prompt defines no probability measure.")
    batch = require_count("prompt_loss", "batch", batch, "a mean needs an element.")
    d = task.cov.shape[-1]
    roots = _constant_covariance_root(task.cov), _constant_covariance_root(task.query_cov)

    def square_error(attention, normals):
        dtype = normals.dtype
        root, query_root = (jnp.asarray(matrix, dtype) for matrix in roots)
        noise_std = task.noise_std.astype(dtype)
        task_normals, query_normals, label_normal, prompt_normals = jnp.split(normals, (d, 2 * d, 2 * d + 1))
        w = task.task_scale.astype(dtype) * task_normals
        query = query_root @ query_normals

        def whiten(dual):
            """Return u with ⟨dual, z⟩ = ⟨u, n⟩ for the token z = (x, ⟨w, x⟩ + noise) made of the normals n."""
            return jnp.append((dual[:d] + dual[d] * w) @ root, noise_std * dual[d])

        tilt, value = attention.bilinear[:, :d] @ query, attention.value[-1]
        output = sampling.output(pool, whiten(tilt), whiten(value), prompt_normals)
        return (output - query @ w - noise_std * label_normal[0]) ** 2

    def loss(params, key):
        attention = head(params)
        shape = (batch, 2 * d + 1 + sampling.normals(length, d + 1))
        normals = fast_normal(key, shape, attention.value.dtype)
        return weight * jnp.mean(jax.vmap(partial(square_error, attention))(normals))

    return loss


@public
def fast_normal(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any = float) -> Float[Array, "..."]:
    """Return standard normals by Box and Muller, at two thirds of the cost of `jax.random.normal`.

    Each is made of 32 random bits. Values end at 6.7 standard deviations; cosine and sine are Taylor polynomials on an
    eighth of the circle, turned by two of the bits, because XLA's own cost more than all the rest.

    Args:
      key: JAX random key.
      shape: shape of the result.
      dtype: `float32` or `float64`.

    Returns:
      The normals.

    Transformations: jit, vmap.
    """
    count = math.prod(shape)
    radius_bits, angle_bits = jr.bits(key, (2, -(-count // 2)), jnp.uint32)
    return jnp.concatenate(_box_muller(radius_bits, angle_bits, dtype=dtype))[:count].reshape(shape)


@public
def _box_muller(
    radius_bits: UInt[Array, "..."], angle_bits: UInt[Array, "..."], *, dtype: Any, terms: int = 9
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return two independent standard normals from 64 random bits."""
    uniform = (radius_bits >> 1).astype(jnp.int32).astype(dtype) * 2.0**-31 + 2.0**-32
    radius = jnp.sqrt(-2 * jnp.log(uniform))
    angle = ((angle_bits >> 2).astype(jnp.int32).astype(dtype) * 2.0**-30 + (2.0**-31 - 0.5)) * (math.pi / 2)
    square = angle**2
    cosine = jnp.polyval(jnp.asarray(_COSINE[-terms:], dtype), square)
    sine = angle * jnp.polyval(jnp.asarray(_SINE[-terms:], dtype), square)
    swap, sign = angle_bits & 1 == 1, (angle_bits & 2).astype(jnp.int32).astype(dtype) - 1
    signed = sign * radius
    return signed * jnp.where(swap, sine, cosine), signed * jnp.where(swap, cosine, sine)


_TERMS = np.arange(8, -1, -1)
_COSINE = (-1.0) ** _TERMS / np.array([math.factorial(2 * n) for n in _TERMS])
_SINE = (-1.0) ** _TERMS / np.array([math.factorial(2 * n + 1) for n in _TERMS])
