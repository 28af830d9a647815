"""The loss of a batch of fresh prompts in one sweep, through a few sums over the tokens of each prompt.

It has the distribution of `lib.icl.prompt_loss` with collapsed sampling, and an explicit gradient. The sums are twelve
for softmax; linear attention has three, which form a Wishart matrix of two dimensions and are drawn as such, at a cost
that does not depend on the length. Derived here.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float, PRNGKeyArray

from lib.attention import Attention
from lib.icl import LinearRegression
from lib.random import fast_normal

# No normal drawn from 31 bits is larger. Coefficients of a quantile below this share of the largest are dropped.
_LARGEST_NORMAL, _QUANTILE_TOLERANCE = 6.7, {"float32": 1e-8, "float64": 1e-13}


class PromptSums(NamedTuple):
    """What a step of training needs of each of B prompts: its output ŷ, and sums that give the derivatives of ŷ."""

    output: Float[Array, " B"]
    by_score: Float[Array, "2 B"]
    by_value: Float[Array, "2 B"]
    products: Float[Array, "3 B"]


class Plane(NamedTuple):
    """Coefficients of the scores τ g and the values a g + ρ h of each of B prompts, in two normals per token."""

    tau: Float[Array, " B"]
    along: Float[Array, " B"]
    rho: Float[Array, " B"]


class Pool(eqx.Module):
    """A pooling: a map from scores s and values r of the tokens to the output ŷ, and sums that give its derivatives."""

    @abc.abstractmethod
    def __call__(self, scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
        """Return the output ŷ."""

    @abc.abstractmethod
    def pair_count(self, length: int) -> int:
        """Return how many pairs of standard normals the tokens of one prompt need."""

    @abc.abstractmethod
    def extra_count(self) -> int:
        """Return how many standard normals one prompt needs in addition."""

    @abc.abstractmethod
    def summarise(
        self, length: int, plane: Plane, pairs: Complex[Array, "halves n half"], extra: Float[Array, "m B"]
    ) -> PromptSums:
        """Return the sums of prompts whose tokens are made of standard normals."""


class SoftmaxPool(Pool):
    """Softmax: `Σ p_i r_i` with p = softmax(s); sums of 1, g, h, g², gh, h² with weights `e^s` and `e^{2s}`."""

    def __call__(self, scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
        """Return `Σ p_i r_i`."""
        return jax.nn.softmax(scores) @ values

    def pair_count(self, length: int) -> int:
        """Return L, one pair per token."""
        return length

    def extra_count(self) -> int:
        """Return 0: the pairs are enough."""
        return 0

    def summarise(
        self, length: int, plane: Plane, pairs: Complex[Array, "halves n half"], extra: Float[Array, "m B"]
    ) -> PromptSums:
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
        return PromptSums(
            output,
            jnp.stack([along * c11 + rho * c12, along * c12 + rho * c22]),
            jnp.stack([m1, m2]),
            jnp.stack([own, shared, q0]),
        )


class LinearPool(Pool):
    """Linear attention: `(1/L) Σ s_i r_i`; the Wishart matrix of L tokens, by Bartlett's decomposition."""

    def __call__(self, scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
        """Return `(1/L) Σ s_i r_i`."""
        return scores @ values / scores.size

    def pair_count(self, length: int) -> int:
        """Return 0, for any length."""
        return 0

    def extra_count(self) -> int:
        """Return 3, one normal per entry of the matrix."""
        return 3

    def summarise(
        self, length: int, plane: Plane, pairs: Complex[Array, "halves n half"], extra: Float[Array, "m B"]
    ) -> PromptSums:
        """Return the sums from a Cholesky factor of two chi variables and a normal."""
        tau, along, rho = plane
        diagonal, corner = jnp.sqrt(_chi_square(extra[0], length)), extra[1]
        rest = jnp.sqrt(_chi_square(extra[2], length - 1))
        gg, gh, hh = diagonal**2, diagonal * corner, corner**2 + rest**2
        values_g, values_h = along * gg + rho * gh, along * gh + rho * hh
        return PromptSums(
            tau * values_g / length,
            jnp.stack([values_g, values_h]) / length,
            tau * jnp.stack([gg, gh]) / length,
            jnp.stack([along * values_g + rho * values_h, tau * values_g, tau**2 * gg]) / length**2,
        )


SOFTMAX, LINEAR = SoftmaxPool(), LinearPool()


def batch_loss(
    task: LinearRegression,
    length: int,
    *,
    batch: int,
    head: Callable[[Any], Attention] = lambda params: params,
    pool: Pool,
    weight: float = 0.5,
) -> Callable[[Any, PRNGKeyArray], Float[Array, ""]]:
    """Return a faster `prompt_loss` of collapsed prompts: same distribution, other random numbers.

    It computes in the precision of the parameters. In single precision derivatives by scores are exact to a thousandth
    of the values, which matters only where one token has all the weight. One start at a time is fastest: under `vmap`
    over starts a step costs more than one start after another.

    Args:
      task: the distribution of prompts; concrete, not traced.
      length: the prompt length L.
      batch: number of prompts.
      head: maps the parameters to a head.
      pool: softmax or linear attention.
      weight: factor of the mean square error: ½ as in [BB26], or 1 as in the published code.

    Returns:
      A function of parameters and a random key: `weight · mean (ŷ - y)²` of a fresh batch, whose gradient is an
      unbiased estimate of the gradient of the risk, and not the derivative of the value. Only first derivatives are
      valid.
    """
    d = task.cov.shape[-1]
    prompt_root, query_root = constant_root(task.cov), constant_root(task.query_cov)
    rest = (4 * d + 4 + pool.extra_count()) // 2
    mixing = np.eye(2 * rest)
    mixing[:d, :d] *= float(task.task_scale)
    mixing[d : 2 * d, d : 2 * d] = query_root
    mixing[2 * d, 2 * d] = float(task.noise_std)
    halves = 1 if batch % 2 else 2  # XLA's sums over tokens are five times slower over the first axis

    def loss_and_gradient(bilinear, value, key):
        dtype = value.dtype
        pair_type = jnp.promote_types(dtype, jnp.complex64)
        root, noise_std = jnp.asarray(prompt_root, dtype), task.noise_std.astype(dtype)

        # in one product, because XLA would draw the normals again for each of several
        drawn = fast_normal(key, (rest, batch), pair_type, stream=1)
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
        pairs = fast_normal(key, (halves, pool.pair_count(length), batch // halves), pair_type)
        sums = pool.summarise(length, Plane(tau, along, rho), pairs, extra)

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
        return weight * jnp.mean(error**2), by_bilinear, by_value

    with_gradient = _with_gradient(loss_and_gradient)

    def loss(params, key):
        attention = head(params)
        return with_gradient(attention.bilinear[:, :d], attention.value[-1], key)

    return loss


def covariance_root(cov: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Return a matrix R with `R Rᵀ = cov`, from its eigenvalues."""
    eigenvalues, eigenvectors = jnp.linalg.eigh(cov)
    return eigenvectors * jnp.sqrt(jnp.maximum(eigenvalues, 0.0))


def constant_root(cov: Float[Array, "d d"]) -> np.ndarray:
    """Return the root as a NumPy array, also inside a trace that holds `cov` as a constant."""
    with jax.ensure_compile_time_eval():
        return np.asarray(covariance_root(cov))


def _unit(vectors: Float[Array, "e B"]) -> tuple[Float[Array, " B"], Float[Array, "e B"]]:
    """Return lengths and directions of the columns; the direction of a zero column is zero."""
    lengths = jnp.sqrt(jnp.sum(vectors**2, axis=0))
    return lengths, vectors * _inverse(lengths)


def _with_gradient(function: Callable) -> Callable:
    """Return the value of a function (x, y, key) -> (value, gradient in x, gradient in y), with these gradients."""

    @jax.custom_vjp
    def value(x, y, key):
        return function(x, y, key)[0]

    def forward(x, y, key):
        result, *gradients = function(x, y, key)
        return result, gradients

    def backward(gradients, cotangent):
        return *(cotangent * gradient for gradient in gradients), None

    value.defvjp(forward, backward)
    return value


def _inverse(scale: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return `1/scale`, or 0 where scale is 0."""
    return jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1.0), 0.0)


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
