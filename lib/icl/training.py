"""Training on fresh prompts: the batch loss of in-context regression.

A step of stochastic gradient descent needs one unbiased gradient of the risk. The plain one draws L tokens of
R^{d+1}; the collapsed one has the same law and draws 2L normals and two vectors. Both are values to pass as `sampling`.
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

from lib._checks import require_count
from lib.attention import Attention
from lib.icl.linear_regression import LinearRegression
from lib.measures import covariance_root

# How scores and values become an output: (scores, values) ↦ ŷ.
Pool = Callable[[Float[Array, " L"], Float[Array, " L"]], Float[Array, ""]]


def softmax_pool(scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
    """`Σ p_i r_i`, p = softmax(s)."""
    return jax.nn.softmax(scores) @ values


def linear_pool(scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
    """`(1/L) Σ s_i r_i`: linear attention."""
    return scores @ values / scores.size


class Sampling(eqx.Module):
    """How a fresh prompt is drawn, seen from where its tokens are L standard normals of R^e."""

    @abc.abstractmethod
    def normals(self, length: int, size: int) -> int:
        """How many standard normals one prompt of `length` tokens of R^size takes."""

    @abc.abstractmethod
    def output(
        self, pool: Pool, tilt: Float[Array, " e"], value: Float[Array, " e"], normals: Float[Array, " n"]
    ) -> Float[Array, ""]:
        """The output at scores ⟨t, n_i⟩ and values ⟨v, n_i⟩; training uses its first derivatives in (t, v)."""


class Plain(Sampling):
    """Draw the L tokens."""

    def normals(self, length, size):
        """One a coordinate of a token."""
        return length * size

    def output(self, pool, tilt, value, normals):
        """As it is defined."""
        tokens = normals.reshape(-1, tilt.size)
        return pool(tokens @ tilt, tokens @ value)


class Collapsed(Sampling):
    """Draw only what the output and its gradient see of the L tokens: same law from 2L normals and two vectors.

    With f₁, f₂ the vectors t, v made orthonormal, `n_i = f₁ g_i + f₂ h_i + ξ_i`: scores and values are made of the
    normals g and h, and ξ is an independent Gaussian that enters only through the two sums
    `∂ŷ/∂t = Σ (∂ŷ/∂s_i) n_i` and `∂ŷ/∂v = Σ (∂ŷ/∂r_i) n_i`, jointly Gaussian given the rest. Exact for first
    derivatives in t and v, and for no others. Derived here.
    """

    def normals(self, length, size):
        """Two a token, and two vectors."""
        return 2 * length + 2 * size

    def output(self, pool, tilt, value, normals):
        """Its value, carrying the gradient that was drawn with it."""
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
        # what of ∂ŷ/∂t is drawn by itself: whichever its sign, the law is the same
        own = jnp.sqrt(jnp.maximum(_dot(by_score, by_score) - shared**2, 0.0))
        by_v = f1 * _dot(by_value, g) + f2 * _dot(by_value, h) + spread * xi1
        by_t = f1 * _dot(by_score, g) + f2 * _dot(by_score, h) + shared * xi1 + own * xi2
        # what is added is zero, but has the gradient
        return output + _dot(by_t, tilt - t) + _dot(by_v, value - v)


plain, collapsed = Plain(), Collapsed()


def _dot(a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sum(a * b)  # under `vmap` XLA fuses this with its neighbours, a batched product of matrices it does not


def _norm(a: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sqrt(_dot(a, a))


def _inverse(scale: Float[Array, ""]) -> Float[Array, ""]:
    """`1/scale`, or 0 where there is nothing to scale."""
    return jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1.0), 0.0)


def prompt_loss(
    task: LinearRegression,
    length: int,
    *,
    batch: int,
    head: Callable[[Any], Attention] = lambda params: params,
    pool: Pool = softmax_pool,
    sampling: Sampling = collapsed,
    weight: float = 0.5,
) -> Callable[[Any, PRNGKeyArray], Float[Array, ""]]:
    """`(params, key) ↦ weight · mean (ŷ - y)²` over a batch of fresh prompts: an unbiased estimate of the risk.

    `head` turns parameters into a head. `weight` is [BB26]'s ½, or 1 for the published code's mean square. Computes
    in the precision of the parameters.
    """
    length = require_count("prompt_loss", "length", length, "an empty prompt defines no probability measure.")
    batch = require_count("prompt_loss", "batch", batch, "a mean needs an element.")
    d = task.cov.shape[-1]
    roots = np.asarray(covariance_root(task.cov)), np.asarray(covariance_root(task.query_cov))

    def square_error(attention, normals):
        dtype = normals.dtype
        root, query_root = (jnp.asarray(matrix, dtype) for matrix in roots)
        noise_std = task.noise_std.astype(dtype)
        task_normals, query_normals, label_normal, prompt_normals = jnp.split(normals, (d, 2 * d, 2 * d + 1))
        w = task.task_scale.astype(dtype) * task_normals
        query = query_root @ query_normals

        def whiten(dual):
            """⟨dual, z⟩ = ⟨whiten(dual), n⟩ for the token z = (x, ⟨w, x⟩ + noise) made of the normals n."""
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


def fast_normal(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any = float) -> Float[Array, "..."]:
    """Standard normals by Box and Muller from 32 random bits each, at two thirds of the price of `jax.random.normal`.

    Values stop at 6.7 standard deviations; cosine and sine are Taylor polynomials on an eighth of the circle,
    turned by two of the bits, because XLA's own cost more than all the rest.
    """
    count = math.prod(shape)
    radius_bits, angle_bits = jr.bits(key, (2, -(-count // 2)), jnp.uint32)
    return jnp.concatenate(box_muller(radius_bits, angle_bits, dtype=dtype))[:count].reshape(shape)


def box_muller(
    radius_bits: UInt[Array, "..."], angle_bits: UInt[Array, "..."], *, dtype: Any, terms: int = 9
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Two independent standard normals from 64 random bits, with so many terms of the two Taylor polynomials."""
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
