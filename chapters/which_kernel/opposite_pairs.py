"""Exact errors of two heads with keys (ω, -ω) and a positive kernel f of their scores, and the curvature of f.

The weights of a head of tilt a are `p_l(a) = f(a g_l)/Σ_m f(a g_m)` on normal scores g. Laplace's identity turns
averages of ratios over L tokens into integrals over the logarithms s and t of the levels of the two heads, as in
`lib.pairs`, here for any f. A token's factor is split into its even and its odd part in g: differences between the
statistics of equal and of opposite tilts are then products of odd parts, without a loss of digits.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import logsumexp, roots_genlaguerre, wrightomega

from lib.icl import LinearRegression

# Nodes in half of the scores, and in the length of the query.
SCORES, RADII = 161, 24
# Step in the levels right of the turn (see `_levels`); largest steps in the scores, and in the scores times the tilt.
LEVEL_STEP, SCORE_STEP, PHASE_STEP = 0.28, 0.25, 0.32
# Step between levels that are tried as the last one, and by how much ln of the integrand falls to the first and last.
TRIED_STEP, DROP_LEFT, DROP_RIGHT = 0.5, 30.0, 40.0
# e^{-x} is below 1e-288 at the exponential of this number.
LARGEST_LOG_SIZE = 6.5


class OppositeStatistics(NamedTuple):
    """The expectations at one tilt a: E ĝ(a), `E ĝ(a)² - E ĝ(a)ĝ(-a)`, and `E Σ p(a)² - E Σ p(a) p(-a)`."""

    mean: Float[Array, "..."]
    product_gap: Float[Array, "..."]
    participation_gap: Float[Array, "..."]


@partial(jax.jit, static_argnums=0)
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
) -> tuple[float, float]:
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
    tilts, edge = abs(omega) * radius, np.sqrt(2 * log_length) + 9.0
    g = np.linspace(0.0, edge, SCORES)
    right, left = map(np.asarray, _on_both_sides(log_kernel, omega * radius[:, None] * g))
    found = [_of_one_tilt(*row, g=g, log_length=log_length) for row in zip(tilts, right, left, strict=True)]
    mean, product_gap, participation_gap = np.array(found).T
    power, noise = float(task.task_scale) ** 2, float(task.noise_std) ** 2
    target = 2 * power * (weight * radius) @ mean
    curvature = 2 * weight @ (power * product_gap + (power * (task.dimension - 1) + noise) * participation_gap)
    return target / curvature, 0.5 * (power * task.dimension + noise - target**2 / curvature)


@partial(jax.jit, static_argnums=0)
def _on_both_sides(
    log_kernel: Callable, scores: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return log f of the scores and of the negative scores."""
    return log_kernel(scores), log_kernel(-scores)


def _radii(dimension: int) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, " r"]]:
    """Return the Gauss rule for the length of a standard normal query."""
    half_square, weight = roots_genlaguerre(RADII, dimension / 2 - 1)
    return np.sqrt(2 * half_square), weight / weight.sum()


def _of_one_tilt(tilt, log_right, log_left, g, log_length) -> OppositeStatistics:
    """Return the statistics of a tilt a > 0, from log f(ag) and log f(-ag) at equidistant nodes g ≥ 0.

    For small tilts, every second or third node is enough.
    """
    stride = int(np.clip(min(SCORE_STEP, PHASE_STEP / tilt) / g[1], 1, 3))
    log_right, log_left, g = log_right[::stride], log_left[::stride], g[::stride]
    normal = math.sqrt(2 / math.pi) * g[1] * np.exp(-(g**2) / 2)
    normal[0] /= 2
    others = math.expm1(log_length)
    s, step = _levels(tilt, log_right, log_left, normal, log_length)
    large, small = _sizes(log_right, s), _sizes(log_left, s)
    kept_right, kept_left = np.exp(-large), np.exp(-small)
    kept_even, kept_odd = _parts(kept_right, kept_left)
    one_even, one_odd = _parts(large * kept_right, small * kept_left)
    lost = -0.5 * (np.expm1(-large) + np.expm1(-small))

    odd_odd = (kept_odd * normal) @ kept_odd.T
    gone = (lost @ normal)[:, None] + (kept_even * normal) @ lost.T
    log_phi, log_phi_opposite = _log_phi(gone - odd_odd), _log_phi(gone + odd_odd)
    single = np.exp(others * log_phi)
    fallen = -np.expm1(others * (log_phi_opposite - log_phi))

    def one_token(weight):
        even, odd = (one_even * weight) @ one_even.T, (one_odd * weight) @ one_odd.T
        return single * (2 * odd + (even - odd) * fallen)

    first, second = (one_odd * (g * normal)) @ kept_even.T, (one_even * (g * normal)) @ kept_odd.T

    def two_tokens(sign, log_phi):
        each = first + sign * second
        return np.exp((others - 1) * log_phi) * each * each.T

    pairs = others * (two_tokens(1, log_phi) + two_tokens(-1, log_phi_opposite))
    survival = np.exp(others * _log_phi(lost @ normal))
    sums = (
        step @ ((one_odd @ (g * normal)) * survival),
        step @ (one_token(g**2 * normal) + pairs) @ step,
        step @ one_token(normal) @ step,
    )
    return OppositeStatistics(*(math.exp(log_length) * each for each in sums))


def _levels(tilt, log_right, log_left, normal, log_length):
    """Return the nodes in the level s and their steps, from the token's factor to where the other tokens end.

    `s = turn + width (z - e^{-z})` with equidistant z: left of the turn the integrand falls like e^s, and steps grow.
    """
    both = np.concatenate([log_right, log_left]) + np.log(np.concatenate([normal, normal]) / 2)
    typical = -log_length - logsumexp(both)
    tried = np.arange(typical, 60.0, TRIED_STEP)
    lost = -0.5 * (np.expm1(-_sizes(log_right, tried)) + np.expm1(-_sizes(log_left, tried)))
    alive = math.expm1(log_length) * _log_phi(lost @ normal) > -DROP_RIGHT - log_length
    turn, width = typical - 2 * tilt, 1 + tilt / 2
    ends = (np.array([typical - DROP_LEFT, tried[alive.sum()]]) - turn) / width
    low, high = ends + wrightomega(-ends)
    z, step = np.linspace(low, high, math.ceil(width * (high - low) / LEVEL_STEP) + 1, retstep=True)
    return turn + width * (z - np.exp(-z)), width * step * (1 + np.exp(-z))


def _sizes(log_factor, s):
    """Return e^s f at every level (rows) and score (columns)."""
    return np.exp(np.minimum(s[:, None] + log_factor, LARGEST_LOG_SIZE))


def _parts(right, left):
    """Return the even and the odd part in g."""
    return 0.5 * (right + left), 0.5 * (right - left)


def _log_phi(lost):
    """Return log φ from 1 - φ."""
    return np.log1p(-np.minimum(lost, 1 - 1e-16))
