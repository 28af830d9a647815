"""Exact errors of two heads with keys (ω, -ω) and a positive kernel f of their scores, and the curvature of f.

The weights of a head of tilt a are `p_l(a) = f(a g_l)/Σ_m f(a g_m)` on normal scores g. Laplace's identity turns
averages of ratios over L tokens into integrals over the logarithms s and t of the levels of the two heads, as in
`lib.pairs`, here for any f. A token's factor is split into its even and its odd part in g: differences between the
statistics of equal and of opposite tilts are then products of odd parts, without a loss of digits.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import roots_genlaguerre

from lib.icl import LinearRegression

# Nodes in the level of one head, in half of the scores, and in the length of the query.
LEVELS, SCORES, RADII = 128, 161, 24
# Halvings that find where the levels end, and the natural logarithms that the integrand falls on both sides.
HALVINGS, DROP_LEFT, DROP_RIGHT = 14, 30.0, 40.0
# e^{-x} is below 1e-288 at the exponential of this number.
LARGEST_LOG_SIZE = 6.5


class OppositeStatistics(NamedTuple):
    """The expectations at one tilt a: E ĝ(a), `E ĝ(a)² - E ĝ(a)ĝ(-a)`, and `E Σ p(a)² - E Σ p(a) p(-a)`."""

    mean: Float[Array, "..."]
    product_gap: Float[Array, "..."]
    participation_gap: Float[Array, "..."]


def kernel_curvature(log_kernel: Callable) -> Float[Array, ""]:
    """Return the third derivative over the first, minus the second, of the kernel f/f(0) at 0, called κ.

    On an infinite prompt of normal scores `a g` a head has the mean score `f'(0)/f(0) a (1 + κ a²/2 + …)`: its response
    is linear to this order for κ = 0, as for the exponential, and saturates for κ < 0.

    Args:
      log_kernel: the function log f, in JAX, with f(0) > 0, f'(0) ≠ 0 and three derivatives at 0.
    """
    zero = jnp.zeros(())

    def kernel(x):
        return jnp.exp(log_kernel(x) - jax.lax.stop_gradient(log_kernel(zero)))

    first = jax.grad(kernel)
    second = jax.grad(first)
    return jax.grad(second)(zero) / first(zero) - second(zero)


def opposite_kernel_values(
    task: LinearRegression, log_kernel: Callable, omega: float, log_length: float
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the best value μ of two heads (ω, μ) and (-ω, -μ) with kernel f, and their risk.

    `2R = τ_w² d + s² - m²/K` with `m = 2τ_w² E r ĝ(ωr)` and
    `K = 2E [τ_w² (ĝ(a)² - ĝ(a)ĝ(-a)) + (τ_w² (d - 1) + s²) Σ (p(a)² - p(a) p(-a))]`, a = ω r.

    Args:
      task: a task with the identity as covariance of tokens and of queries.
      log_kernel: the function log f, elementwise in JAX; -inf at isolated zeros is allowed.
      omega: the key ω, of either sign, 0.005 ≤ |ω| ≤ 0.6.
      log_length: natural logarithm of the prompt length, ln 10 ≤ log_length ≤ 10.

    Returns:
      (μ, risk): half the mean square, label noise included. The risk has an error below 1e-9 for d ≤ 5 (1e-11 for
      |ω| ≤ 0.35); its excess over the noise loses digits in proportion to L.
    """
    radius, weight = _radii(task.dimension)
    edge = np.sqrt(2 * log_length) + 9.0
    g, step = np.linspace(0.0, edge, SCORES, retstep=True)
    scores = omega * radius[:, None] * g
    normal = math.sqrt(2 / math.pi) * step * np.exp(-(g**2) / 2)
    normal[0] /= 2
    found = opposite_statistics(log_kernel(scores), log_kernel(-scores), g, normal, log_length)
    mean, product_gap, participation_gap = (np.asarray(each) for each in found)
    power, noise = float(task.task_scale) ** 2, float(task.noise_std) ** 2
    target = 2 * power * (weight * radius) @ mean
    curvature = 2 * weight @ (power * product_gap + (power * (task.dimension - 1) + noise) * participation_gap)
    return target / curvature, 0.5 * (power * task.dimension + noise - target**2 / curvature)


def _radii(dimension: int) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, " r"]]:
    """Return the Gauss rule for the length of a standard normal query."""
    half_square, weight = roots_genlaguerre(RADII, dimension / 2 - 1)
    return np.sqrt(2 * half_square), weight / weight.sum()


@jax.jit
def opposite_statistics(log_right, log_left, g, normal, log_length) -> OppositeStatistics:
    """Return the statistics of several tilts.

    Args:
      log_right: log f(ag) at the nodes g ≥ 0, one row per tilt.
      log_left: log f(-ag) there.
      g: the nodes.
      normal: their weights.
      log_length: natural logarithm of the prompt length.
    """
    return jax.lax.map(lambda row: _of_one_tilt(*row, g, normal, log_length), (log_right, log_left))


def _of_one_tilt(log_right, log_left, g, normal, log_length) -> OppositeStatistics:
    others, length = jnp.expm1(log_length), jnp.exp(log_length)
    s, step = _levels(log_right, log_left, normal, log_length)
    large, small = _sizes(log_right, s), _sizes(log_left, s)
    kept_even, kept_odd = _parts(jnp.exp(-large), jnp.exp(-small))
    one_even, one_odd = _parts(large * jnp.exp(-large), small * jnp.exp(-small))
    lost, unit = -0.5 * (jnp.expm1(-large) + jnp.expm1(-small)), jnp.ones_like(g)

    def mean(left, right, weight):
        return (left * (weight * normal)) @ right.T

    odd_odd = mean(kept_odd, kept_odd, unit)
    gone = (lost @ normal)[:, None] + mean(kept_even, lost, unit)
    log_phi, log_phi_opposite = _log_phi(gone - odd_odd), _log_phi(gone + odd_odd)
    single = jnp.exp(others * log_phi)
    fallen = -jnp.expm1(others * (log_phi_opposite - log_phi))

    def one_token(weight):
        even, odd = mean(one_even, one_even, weight), mean(one_odd, one_odd, weight)
        return jnp.sum(single * (2 * odd + (even - odd) * fallen))

    first, second = mean(one_odd, kept_even, g), mean(one_even, kept_odd, g)

    def two_tokens(sign, log_phi):
        each = first + sign * second
        return jnp.sum(jnp.exp((others - 1) * log_phi) * each * each.T)

    pairs = others * (two_tokens(1, log_phi) + two_tokens(-1, log_phi_opposite))
    survival = jnp.exp(others * _log_phi(lost @ normal))
    mean_score = step * length * jnp.sum((one_odd @ (g * normal)) * survival)
    area = step**2 * length
    return OppositeStatistics(mean_score, area * (one_token(g**2) + pairs), area * one_token(unit))


def _levels(log_right, log_left, normal, log_length):
    """Return the nodes in the level s, and their spacing: from the token's factor to where the other tokens end."""

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        lost = -0.5 * (jnp.expm1(-_sizes(log_right, middle)) + jnp.expm1(-_sizes(log_left, middle)))
        alive = jnp.expm1(log_length) * _log_phi(lost @ normal) > -DROP_RIGHT - log_length
        return jnp.where(alive, middle, low), jnp.where(alive, high, middle)

    both = jnp.concatenate([log_right, log_left]) + jnp.log(jnp.concatenate([normal, normal]) / 2)
    bottom = -log_length - jax.nn.logsumexp(both) - DROP_LEFT
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (bottom[None], jnp.full(1, 60.0)))
    bottom, top = jax.lax.stop_gradient((bottom, 0.5 * (low + high)[0]))
    return jnp.linspace(bottom, top, LEVELS), (top - bottom) / (LEVELS - 1)


def _sizes(log_factor, s):
    """Return e^s f at every level (rows) and score (columns)."""
    return jnp.exp(jnp.minimum(s[:, None] + log_factor, LARGEST_LOG_SIZE))


def _parts(right, left):
    """Return the even and the odd part in g."""
    return 0.5 * (right + left), 0.5 * (right - left)


def _log_phi(lost):
    """Return log φ from 1 - φ."""
    return jnp.log1p(-jnp.minimum(lost, 1 - 1e-16))
