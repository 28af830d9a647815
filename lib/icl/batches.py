"""Training on fresh prompts as fast as their normals can be drawn: a batch in one sweep, its gradient written out.

The law is that of `prompt_loss` with collapsed prompts, in another arrangement. With scores `s_i = τ g_i` and values
`r_i = a g_i + ρ h_i` of standard normals (g, h), the output and its first derivatives depend on a prompt through few
sums over its tokens: twelve for softmax, three for linear attention, which are a Wishart matrix of two dimensions and
are drawn as such, at a cost that does not depend on the length. Derived here.
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

from lib._checks import require_count
from lib.attention import Attention
from lib.icl.linear_regression import LinearRegression
from lib.icl.training import box_muller
from lib.measures import covariance_root

# Terms of the cosine's and the sine's Taylor polynomial that an eighth of the circle needs, by precision.
TERMS = {"float32": 5, "float64": 9}
# No normal drawn from 31 bits is larger; and how exact a quantile is, as a share of the largest.
LARGEST, EXACTNESS = 6.7, {"float32": 1e-8, "float64": 1e-13}


class Seen(NamedTuple):
    """What a step sees of each of B prompts: its output ŷ, and of its derivatives by scores and by values...

    ...the sums along the normals g and h, and the three products of the two vectors of derivatives.
    """

    output: Float[Array, " B"]
    by_score: Float[Array, "2 B"]
    by_value: Float[Array, "2 B"]
    products: Float[Array, "3 B"]  # by_score², by_score · by_value, by_value²


class Plane(NamedTuple):
    """How scores τg and values ag + ρh of each of B prompts are made of two standard normals a token; a is `along`."""

    tau: Float[Array, " B"]
    along: Float[Array, " B"]
    rho: Float[Array, " B"]


class Summary(eqx.Module):
    """How a head pools a prompt, by the sums over tokens that its output and its gradient are made of."""

    @abc.abstractmethod
    def pairs(self, length: int) -> int:
        """How many pairs of standard normals the tokens of a prompt take."""

    @abc.abstractmethod
    def further(self) -> int:
        """How many standard normals its sums take beside."""

    @abc.abstractmethod
    def see(
        self, length: int, plane: Plane, pairs: Complex[Array, "halves n half"], further: Float[Array, "m B"]
    ) -> Seen:
        """Of prompts whose tokens are made of `pairs`, the numbers g + ih."""


class SoftmaxSummary(Summary):
    """Sums of 1, g, h, g², gh, h² with weights `e^s` and `e^{2s}`."""

    def pairs(self, length):
        """One a token."""
        return length

    def further(self):
        """None."""
        return 0

    def see(self, length, plane, pairs, further):
        """Moments of (g, h) under p = softmax(s), and p² beside p."""
        tau, along, rho = plane
        pairs = jax.lax.optimization_barrier(pairs)
        scores = tau.reshape(pairs.shape[0], 1, pairs.shape[-1]) * pairs.real
        # every sum is a loop of its own, which must not draw the normals or take exponentials again
        weights = jax.lax.optimization_barrier(jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True)))
        size = pairs.real**2 + pairs.imag**2

        def sums(weights):
            """Of 1, g, h, g², gh, h²: in complex numbers, since XLA is slow at taking g and h apart."""
            first = jnp.sum(weights * pairs, axis=1).ravel()
            square = jnp.sum(weights * pairs**2, axis=1).ravel()
            even = jnp.sum(weights * jax.lax.complex(jnp.ones_like(weights), size), axis=1).ravel()
            second = [(even.imag + square.real) / 2, square.imag / 2, (even.imag - square.real) / 2]
            return [even.real, first.real, first.imag, *second]

        total, *first = sums(weights)
        m1, m2, m11, m12, m22 = (term / total for term in first)
        q0, q1, q2, q11, q12, q22 = (term / total**2 for term in sums(weights**2))
        output = along * m1 + rho * m2
        c11, c12, c22 = m11 - m1**2, m12 - m1 * m2, m22 - m2**2
        shared = along * q1 + rho * q2 - output * q0
        own = along**2 * q11 + 2 * along * rho * q12 + rho**2 * q22 - 2 * output * shared - output**2 * q0
        return Seen(
            output,
            jnp.stack([along * c11 + rho * c12, along * c12 + rho * c22]),
            jnp.stack([m1, m2]),
            jnp.stack([own, shared, q0]),
        )


class LinearSummary(Summary):
    """`Σ g², Σ gh, Σ h²`: a Wishart matrix of L tokens, by Bartlett's decomposition."""

    def pairs(self, length):
        """None, however long the prompt is."""
        return 0

    def further(self):
        """One an entry of the matrix."""
        return 3

    def see(self, length, plane, pairs, further):
        """Two chi variables and a normal are the Cholesky factor."""
        tau, along, rho = plane
        diagonal, corner = jnp.sqrt(chi_square(further[0], length)), further[1]
        rest = jnp.sqrt(chi_square(further[2], length - 1))
        gg, gh, hh = diagonal**2, diagonal * corner, corner**2 + rest**2
        values_g, values_h = along * gg + rho * gh, along * gh + rho * hh
        return Seen(
            tau * values_g / length,
            jnp.stack([values_g, values_h]) / length,
            tau * jnp.stack([gg, gh]) / length,
            jnp.stack([along * values_g + rho * values_h, tau * values_g, tau**2 * gg]) / length**2,
        )


softmax_summary, linear_summary = SoftmaxSummary(), LinearSummary()


def batch_loss(
    task: LinearRegression,
    length: int,
    *,
    batch: int,
    head: Callable[[Any], Attention] = lambda params: params,
    summary: Summary = softmax_summary,
    weight: float = 0.5,
) -> Callable[[Any, PRNGKeyArray], Float[Array, ""]]:
    """`prompt_loss` of collapsed prompts, faster: same law, other random numbers, first derivatives only.

    Computes in the precision of the parameters. In single precision derivatives by scores are exact to a thousandth of
    the values, which matters only where one token has all the weight. XLA makes most of one start at a time: under
    `vmap` over starts a step costs more than one after another.
    """
    length = require_count("batch_loss", "length", length, "an empty prompt defines no probability measure.")
    batch = require_count("batch_loss", "batch", batch, "a mean needs an element.")
    d = task.cov.shape[-1]
    prompt_root, query_root = np.asarray(covariance_root(task.cov)), np.asarray(covariance_root(task.query_cov))
    rest = (4 * d + 4 + summary.further()) // 2
    mixing = np.eye(2 * rest)
    mixing[:d, :d] *= float(task.task_scale)
    mixing[d : 2 * d, d : 2 * d] = query_root
    mixing[2 * d, 2 * d] = float(task.noise_std)
    halves = 1 if batch % 2 else 2  # XLA's sums over tokens are five times slower over an axis that is the first

    def loss(params, key):
        attention = head(params)
        bilinear, value = jax.lax.stop_gradient((attention.bilinear[:, :d], attention.value[-1]))
        dtype = value.dtype
        root, noise_std = jnp.asarray(prompt_root, dtype), task.noise_std.astype(dtype)

        # in one product, since XLA would draw anew for each of them what it fuses with
        drawn = normal_pairs(key, 1, (rest, batch), dtype)
        drawn = jnp.asarray(mixing, dtype) @ jnp.concatenate([drawn.real, drawn.imag])
        w, query, label, xi1, xi2, further = jnp.split(drawn, (d, 2 * d, 2 * d + 1, 3 * d + 2, 4 * d + 3))
        target = jnp.sum(query * w, axis=0) + label[0]

        def whiten(dual):
            """⟨dual, z⟩ = ⟨whiten(dual), n⟩ for the token z = (x, ⟨w, x⟩ + noise) made of the normals n."""
            return jnp.concatenate([root.T @ (dual[:d] + dual[d] * w), noise_std * dual[d:]])

        def token(normals):
            """The token z made of the normals n."""
            x = root @ normals[:d]
            return jnp.concatenate([x, jnp.sum(w * x, axis=0, keepdims=True) + noise_std * normals[d:]])

        t, v = whiten(bilinear @ query), whiten(jnp.broadcast_to(value[:, None], (d + 1, batch)))
        tau, f1 = _unit(t)
        along = jnp.sum(v * f1, axis=0)
        rho, f2 = _unit(v - along * f1)
        pairs = normal_pairs(key, 0, (halves, summary.pairs(length), batch // halves), dtype)
        seen = summary.see(length, Plane(tau, along, rho), pairs, further)

        own, shared, squared = seen.products
        spread = jnp.sqrt(squared)
        shared = shared * _inverse(spread)
        own = jnp.sqrt(jnp.maximum(own - shared**2, 0.0))
        xi1, xi2 = (xi - f1 * jnp.sum(f1 * xi, axis=0) - f2 * jnp.sum(f2 * xi, axis=0) for xi in (xi1, xi2))
        by_t = token(f1 * seen.by_score[0] + f2 * seen.by_score[1] + shared * xi1 + own * xi2)
        by_v = token(f1 * seen.by_value[0] + f2 * seen.by_value[1] + spread * xi1)

        error = seen.output - target
        slope = 2 * weight / batch * error
        by_bilinear, by_value = (slope * by_t) @ query.T, jnp.sum(slope * by_v, axis=1)
        # what is added is zero, but has the gradient
        return (
            weight * jnp.mean(error**2)
            + jnp.sum(jax.lax.stop_gradient(by_bilinear) * (attention.bilinear[:, :d] - bilinear))
            + jnp.sum(jax.lax.stop_gradient(by_value) * (attention.value[-1] - value))
        )

    return loss


def _unit(vectors: Float[Array, "e B"]) -> tuple[Float[Array, " B"], Float[Array, "e B"]]:
    """Lengths and directions of the columns; no direction where there is no length."""
    lengths = jnp.sqrt(jnp.sum(vectors**2, axis=0))
    return lengths, vectors * _inverse(lengths)


def _inverse(scale: Float[Array, " B"]) -> Float[Array, " B"]:
    return jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1.0), 0.0)


def normal_pairs(key: PRNGKeyArray, stream: int, shape: tuple[int, ...], dtype: Any) -> Complex[Array, "..."]:
    """Pairs of independent standard normals as complex numbers, from one block of 64 bits each.

    Complex, because XLA computes two arrays that share their origin twice. Streams of one key are independent.
    """
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    count = jnp.zeros(shape, jnp.uint32)
    for axis, step in enumerate(strides):
        count = count + jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * np.uint32(step)
    words = threefry(jr.key_data(key), jnp.full_like(count, stream), count)
    return jax.lax.complex(*box_muller(*words, dtype=dtype, terms=TERMS[jnp.dtype(dtype).name]))


def threefry(
    key: UInt[Array, "2"], high: UInt[Array, "..."], low: UInt[Array, "..."]
) -> tuple[UInt[Array, "..."], UInt[Array, "..."]]:
    """Two random words for each count `high·2³² + low`: the twenty rounds of Threefry-2x32 [SMDS11].

    JAX's own generator, whose rounds are a loop on a processor; written out they fuse with what uses the words.
    """
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


def chi_square(normals: Float[Array, "..."], degrees: int) -> Float[Array, "..."]:
    """A sum of `degrees` squared normals, as a function of one normal: the quantile of the same chance.

    The quantile is smooth in the normal and its Chebyshev polynomial exact to rounding, so this costs the same at every
    number of degrees and rejects nothing.
    """
    if degrees == 0:
        return jnp.zeros_like(normals)
    first, *others = (jnp.asarray(each, normals.dtype) for each in _quantile(degrees, normals.dtype.name)[::-1])
    at = normals / jnp.asarray(LARGEST, normals.dtype)
    last, before = jnp.zeros_like(at), jnp.full_like(at, first)
    for each in others[:-1]:
        last, before = before, each + 2 * at * before - last
    return jnp.maximum(others[-1] + at * before - last, 0.0)


def _quantile(degrees: int, precision: str) -> np.ndarray:
    """Chebyshev coefficients of z ↦ F⁻¹(Φ(z)) on [-`LARGEST`, `LARGEST`], F the chi-square law."""
    from scipy.stats import chi2, norm  # scipy.stats takes a second to import

    def quantile(share):
        z = share * LARGEST
        return np.where(z < 0, chi2.ppf(norm.cdf(z), degrees), chi2.isf(norm.sf(z), degrees))

    coefficients = np.polynomial.chebyshev.chebinterpolate(quantile, 100)  # pyright: ignore
    kept = np.abs(coefficients) > EXACTNESS[precision] * np.abs(coefficients).max()
    return coefficients[: np.flatnonzero(kept)[-1] + 1]
