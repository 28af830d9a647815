"""Training on fresh prompts as fast as their normals can be drawn: a batch in one sweep, with an explicit gradient.

The distribution is that of `prompt_loss` with collapsed prompts. With scores `s_i = τ g_i` and values `r_i = a g_i + ρ
h_i` of standard normals (g, h), the output and its first derivatives depend on a prompt through a few sums over its
tokens: twelve for softmax; three for linear attention, which form a Wishart matrix of two dimensions and are drawn as
such, at a cost that does not depend on the length. Derived here.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Complex, Float, PRNGKeyArray, UInt

from lib._checks import public, require_count
from lib.attention import Attention
from lib.icl.regression import LinearRegression
from lib.icl.training import _box_muller
from lib.measures import _constant_covariance_root

# Terms of the Taylor polynomials of cosine and sine that an eighth of the circle needs, by precision.
_TAYLOR_TERMS = {"float32": 5, "float64": 9}
# No normal drawn from 31 bits is larger. Coefficients of a quantile below this share of the largest are dropped.
_LARGEST_NORMAL, _QUANTILE_TOLERANCE = 6.7, {"float32": 1e-8, "float64": 1e-13}


class _PromptSums(NamedTuple):
    """What a step of training needs of each of B prompts: its output ŷ, and sums that give the derivatives of ŷ."""

    output: Float[Array, " B"]
    by_score: Float[Array, "2 B"]
    by_value: Float[Array, "2 B"]
    products: Float[Array, "3 B"]


class _Plane(NamedTuple):
    """Coefficients of the scores τ g and the values a g + ρ h of each of B prompts, in two normals per token."""

    tau: Float[Array, " B"]
    along: Float[Array, " B"]
    rho: Float[Array, " B"]


class _Summary(eqx.Module):
    """A pooling of prompts, given by the sums over tokens that its output and its gradient need."""

    @abc.abstractmethod
    def pair_count(self, length: int) -> int:
        """Return how many pairs of standard normals the tokens of one prompt need."""

    @abc.abstractmethod
    def extra_count(self) -> int:
        """Return how many standard normals one prompt needs in addition."""

    @abc.abstractmethod
    def summarise(
        self, length: int, plane: _Plane, pairs: Complex[Array, "halves n half"], extra: Float[Array, "m B"]
    ) -> _PromptSums:
        """Return the sums of prompts whose tokens are made of standard normals."""


class _SoftmaxSummary(_Summary):
    """Softmax: sums of 1, g, h, g², gh, h² with weights `e^s` and `e^{2s}`."""

    def pair_count(self, length: int) -> int:
        """Return L, one pair per token."""
        return length

    def extra_count(self) -> int:
        """Return 0: the pairs are enough."""
        return 0

    @public
    def summarise(
        self, length: int, plane: _Plane, pairs: Complex[Array, "halves n half"], extra: Float[Array, "m B"]
    ) -> _PromptSums:
        """Return the sums from the moments of (g, h) under the weights p = softmax(s) and p²."""
        tau, along, rho = plane
        pairs = jax.lax.optimization_barrier(pairs)
        scores = tau.reshape(pairs.shape[0], 1, pairs.shape[-1]) * pairs.real
        # every sum is a separate loop, which must not draw the normals or take exponentials again
        weights = jax.lax.optimization_barrier(jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True)))
        size = pairs.real**2 + pairs.imag**2

        def weighted_sums(weights):
            """Return the sums of 1, g, h, g², gh, h², in complex numbers because XLA is slow to separate g and h."""
            first = jnp.sum(weights * pairs, axis=1).ravel()
            square = jnp.sum(weights * pairs**2, axis=1).ravel()
            even = jnp.sum(weights * jax.lax.complex(jnp.ones_like(weights), size), axis=1).ravel()
            second = [(even.imag + square.real) / 2, square.imag / 2, (even.imag - square.real) / 2]
            return [even.real, first.real, first.imag, *second]

        total, *first = weighted_sums(weights)
        m1, m2, m11, m12, m22 = (term / total for term in first)
        q0, q1, q2, q11, q12, q22 = (term / total**2 for term in weighted_sums(weights**2))
        output = along * m1 + rho * m2
        c11, c12, c22 = m11 - m1**2, m12 - m1 * m2, m22 - m2**2
        shared = along * q1 + rho * q2 - output * q0
        own = along**2 * q11 + 2 * along * rho * q12 + rho**2 * q22 - 2 * output * shared - output**2 * q0
        return _PromptSums(
            output,
            jnp.stack([along * c11 + rho * c12, along * c12 + rho * c22]),
            jnp.stack([m1, m2]),
            jnp.stack([own, shared, q0]),
        )


class _LinearSummary(_Summary):
    """Linear attention: `Σ g², Σ gh, Σ h²`, the Wishart matrix of L tokens, by Bartlett's decomposition."""

    def pair_count(self, length: int) -> int:
        """Return 0, for any length."""
        return 0

    def extra_count(self) -> int:
        """Return 3, one normal per entry of the matrix."""
        return 3

    @public
    def summarise(
        self, length: int, plane: _Plane, pairs: Complex[Array, "halves n half"], extra: Float[Array, "m B"]
    ) -> _PromptSums:
        """Return the sums from a Cholesky factor of two chi variables and a normal."""
        tau, along, rho = plane
        diagonal, corner = jnp.sqrt(_chi_square(extra[0], length)), extra[1]
        rest = jnp.sqrt(_chi_square(extra[2], length - 1))
        gg, gh, hh = diagonal**2, diagonal * corner, corner**2 + rest**2
        values_g, values_h = along * gg + rho * gh, along * gh + rho * hh
        return _PromptSums(
            tau * values_g / length,
            jnp.stack([values_g, values_h]) / length,
            tau * jnp.stack([gg, gh]) / length,
            jnp.stack([along * values_g + rho * values_h, tau * values_g, tau**2 * gg]) / length**2,
        )


softmax_summary, linear_summary = _SoftmaxSummary(), _LinearSummary()


@public
def batch_loss(
    task: LinearRegression,
    length: int,
    *,
    batch: int,
    head: Callable[[Any], Attention] = lambda params: params,
    summary: _Summary = softmax_summary,
    weight: float = 0.5,
) -> Callable[[Any, PRNGKeyArray], Float[Array, ""]]:
    """Return a faster `prompt_loss` of collapsed prompts: same distribution, other random numbers.

    It computes in the precision of the parameters. In single precision derivatives by scores are exact to a thousandth
    of the values, which matters only where one token has all the weight. One start at a time is fastest: under `vmap`
    over starts a step costs more than one start after another.

    Args:
      task: the distribution of prompts; concrete, not traced.
      length: the prompt length L, at least 1.
      batch: number of prompts, at least 1.
      head: maps the parameters to a head.
      summary: the pooling, `softmax_summary` or `linear_summary`.
      weight: factor of the mean square error: ½ as in [BB26], or 1 as in the published code.

    Returns:
      A function of parameters and a random key: `weight · mean (ŷ - y)²` of a fresh batch, whose gradient is an
      unbiased estimate of the gradient of the risk, and not the derivative of the value. Only first derivatives are
      valid.

    Raises:
      ValueError: if a count is not a whole number ≥ 1.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    length = require_count("batch_loss", "length", length, "an empty prompt defines no probability measure.")
    batch = require_count("batch_loss", "batch", batch, "a mean needs an element.")
    d = task.cov.shape[-1]
    prompt_root, query_root = _constant_covariance_root(task.cov), _constant_covariance_root(task.query_cov)
    rest = (4 * d + 4 + summary.extra_count()) // 2
    mixing = np.eye(2 * rest)
    mixing[:d, :d] *= float(task.task_scale)
    mixing[d : 2 * d, d : 2 * d] = query_root
    mixing[2 * d, 2 * d] = float(task.noise_std)
    halves = 1 if batch % 2 else 2  # XLA's sums over tokens are five times slower over the first axis

    def loss(params, key):
        attention = head(params)
        bilinear, value = jax.lax.stop_gradient((attention.bilinear[:, :d], attention.value[-1]))
        dtype = value.dtype
        root, noise_std = jnp.asarray(prompt_root, dtype), task.noise_std.astype(dtype)

        # in one product, because XLA would draw the normals again for each of several
        drawn = normal_pairs(key, 1, (rest, batch), dtype)
        drawn = jnp.asarray(mixing, dtype) @ jnp.concatenate([drawn.real, drawn.imag])
        w, query, label, xi1, xi2, extra = jnp.split(drawn, (d, 2 * d, 2 * d + 1, 3 * d + 2, 4 * d + 3))
        target = jnp.sum(query * w, axis=0) + label[0]

        def whiten(dual):
            """Return u with ⟨dual, z⟩ = ⟨u, n⟩ for the token z = (x, ⟨w, x⟩ + noise) made of the normals n."""
            return jnp.concatenate([root.T @ (dual[:d] + dual[d] * w), noise_std * dual[d:]])

        def token(normals):
            """Return the token z made of the normals n."""
            x = root @ normals[:d]
            return jnp.concatenate([x, jnp.sum(w * x, axis=0, keepdims=True) + noise_std * normals[d:]])

        t, v = whiten(bilinear @ query), whiten(jnp.broadcast_to(value[:, None], (d + 1, batch)))
        tau, f1 = _unit(t)
        along = jnp.sum(v * f1, axis=0)
        rho, f2 = _unit(v - along * f1)
        pairs = normal_pairs(key, 0, (halves, summary.pair_count(length), batch // halves), dtype)
        sums = summary.summarise(length, _Plane(tau, along, rho), pairs, extra)

        own, shared, squared = sums.products
        spread = jnp.sqrt(squared)
        shared = shared * _inverse(spread)
        own = jnp.sqrt(jnp.maximum(own - shared**2, 0.0))
        xi1, xi2 = (xi - f1 * jnp.sum(f1 * xi, axis=0) - f2 * jnp.sum(f2 * xi, axis=0) for xi in (xi1, xi2))
        by_t = token(f1 * sums.by_score[0] + f2 * sums.by_score[1] + shared * xi1 + own * xi2)
        by_v = token(f1 * sums.by_value[0] + f2 * sums.by_value[1] + spread * xi1)

        error = sums.output - target
        slope = 2 * weight / batch * error
        by_bilinear, by_value = (slope * by_t) @ query.T, jnp.sum(slope * by_v, axis=1)
        # the added terms are zero but carry the gradient
        return (
            weight * jnp.mean(error**2)
            + jnp.sum(jax.lax.stop_gradient(by_bilinear) * (attention.bilinear[:, :d] - bilinear))
            + jnp.sum(jax.lax.stop_gradient(by_value) * (attention.value[-1] - value))
        )

    return loss


def _unit(vectors: Float[Array, "e B"]) -> tuple[Float[Array, " B"], Float[Array, "e B"]]:
    """Return lengths and directions of the columns; the direction of a zero column is zero."""
    lengths = jnp.sqrt(jnp.sum(vectors**2, axis=0))
    return lengths, vectors * _inverse(lengths)


def _inverse(scale: Float[Array, " B"]) -> Float[Array, " B"]:
    return jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1.0), 0.0)


@public
def normal_pairs(key: PRNGKeyArray, stream: int, shape: tuple[int, ...], dtype: Any) -> Complex[Array, "..."]:
    """Return pairs of independent standard normals as complex numbers, each from one block of 64 random bits.

    They are complex because XLA computes two arrays of a common origin twice.

    Args:
      key: JAX random key.
      stream: number of the stream; streams of one key are independent.
      shape: shape of the result.
      dtype: `float32` or `float64`.

    Returns:
      The pairs g + ih.

    Transformations: jit, vmap.
    """
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    count = jnp.zeros(shape, jnp.uint32)
    for axis, step in enumerate(strides):
        count = count + jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * np.uint32(step)
    words = _threefry(jr.key_data(key), jnp.full_like(count, stream), count)
    return jax.lax.complex(*_box_muller(*words, dtype=dtype, terms=_TAYLOR_TERMS[jnp.dtype(dtype).name]))


@public
def _threefry(
    key: UInt[Array, "2"], high: UInt[Array, "..."], low: UInt[Array, "..."]
) -> tuple[UInt[Array, "..."], UInt[Array, "..."]]:
    """Return two random words for each count `high·2³² + low`: the twenty rounds of Threefry-2x32 [SMDS11]."""
    parity = key[0] ^ key[1] ^ jnp.uint32(0x1BD11BDA)
    schedule = (key[0], key[1], parity)
    left, right = high + schedule[0], low + schedule[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            left = left + right
            right = left ^ ((right << jnp.uint32(turn)) | (right >> jnp.uint32(32 - turn)))
        left = left + schedule[(group + 1) % 3]
        right = right + schedule[(group + 2) % 3] + jnp.uint32(group + 1)
    return left, right


@public
def _chi_square(normals: Float[Array, "..."], degrees: int) -> Float[Array, "..."]:
    """Return `F⁻¹(Φ(z))`, F the chi-square distribution function: a sum of squared normals from a single normal z."""
    if degrees == 0:
        return jnp.zeros_like(normals)
    first, *others = (jnp.asarray(each, normals.dtype) for each in _quantile(degrees, normals.dtype.name)[::-1])
    at = normals / jnp.asarray(_LARGEST_NORMAL, normals.dtype)
    last, before = jnp.zeros_like(at), jnp.full_like(at, first)
    for each in others[:-1]:
        last, before = before, each + 2 * at * before - last
    return jnp.maximum(others[-1] + at * before - last, 0.0)


def _quantile(degrees: int, precision: str) -> np.ndarray:
    """Return Chebyshev coefficients of z ↦ F⁻¹(Φ(z)), |z| ≤ LARGEST_NORMAL, F the chi-square distribution function."""
    from scipy.stats import chi2, norm  # scipy.stats takes a second to import

    def quantile(share):
        z = share * _LARGEST_NORMAL
        return np.where(z < 0, chi2.ppf(norm.cdf(z), degrees), chi2.isf(norm.sf(z), degrees))

    coefficients = np.polynomial.chebyshev.chebinterpolate(quantile, 100)  # pyright: ignore
    significant = np.abs(coefficients) > _QUANTILE_TOLERANCE[precision] * np.abs(coefficients).max()
    return coefficients[: np.flatnonzero(significant)[-1] + 1]
