"""A quadrature for ratios over a sum of random exponentials, at any number of terms.

Softmax weights of independent scores $χ_i ~ N(0, τ²)$ are $e^{χ_i}/S$ with $S = Σ e^{χ_i}$. Laplace's identity
`Γ(j)/S^j = ∫ e^{jy} exp(-e^y S) dy` turns an average of such ratios into one integral over y of products of one-token
expectations, in which the number of terms is an exponent:

    E[Σ_i e^{2χ_i}/S²] = L ∫ E[e^{2u} exp(-e^u)] φ^{L-1} dy,   φ = E exp(-e^u),   u = y + τg,   g ~ N(0, 1).

This module computes the one-token expectations and places the nodes. Both are plain trapezoids after a smooth change of
variable, hence spectrally accurate. All terms are positive, hence the error is relative to the result. Derived here,
see book/exact_finite_prompt.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import as_array, as_float, public, require_float64
from lib._namespace import constant, few, jitted, namespace, sigmoid, softplus
from lib._types import AnyArray, Scalar, Scalars


class Resolution(eqx.Module):
    """Step sizes and ranges of the two trapezoids. With the defaults the error is rounding (see the tests).

    Attributes:
      count: number of nodes in y.
      step: spacing of the nodes in g, where the integrand is smooth on the scale 1.
      reach: range of g on both sides of the integrand's peak, in standard deviations.
      drop: natural logarithms by which the y-integrand falls before it is cut.
    """

    count: int = eqx.field(static=True, default=192)
    step: float = eqx.field(static=True, default=0.25)
    reach: float = eqx.field(static=True, default=8.5)
    drop: float = eqx.field(static=True, default=42.0)

    @property
    def _refinements(self) -> tuple["Resolution", "Resolution", "Resolution"]:
        """This resolution, one with finer steps and one that reaches farther: their differences estimate the error."""
        count = self.count * 3 // 2
        finer = Resolution(count=count, step=self.step / 1.5)
        return self, finer, Resolution(count=count, reach=self.reach + 2, drop=self.drop + 18)

    @public
    def levels(self, tau: Scalar, log_length: Scalar, *, shift: Scalar = 0.0) -> tuple[Float[AnyArray, " n"], Scalar]:
        """Return nodes y, and their spacing, for `∫ E[e^{u+shift} exp(-e^{u+shift})] φ^{L-1} dy`.

        They serve all integrands that fall faster, too. On the right the range ends where $φ^{L-1}$ or the token's own
        Gaussian tail has fallen by `drop` logarithms; on the left where the token's part has, which rises monotonically
        until L(1 - φ) is about one.

        Args:
          tau: standard deviation τ of the scores, shape (), τ > 0.
          log_length: natural logarithm of the number of terms L, shape ().
          shift: advantage of one special token in its score, shape ().

        Returns:
          The nodes, shape (count,), and their spacing, shape (); neither has a derivative.

        Raises:
          ValueError: if float64 is off.

        Source: derived here. Transformations: jit, vmap.
        """
        xp = namespace(tau, log_length, shift)
        tau, log_length, shift = constant(*(xp.asarray(x, float) for x in (tau, log_length, shift)))
        require_float64("Resolution.levels", xp.asarray(tau))
        bottom, top = self._ends(tau, log_length, shift)
        return xp.linspace(bottom, top, self.count), (top - bottom) / (self.count - 1)

    def _shared_levels(
        self, tau: Scalar, log_lengths: Float[np.ndarray, " k"]
    ) -> tuple[Float[np.ndarray, " n"], np.floating]:
        """Return the nodes of `levels` for several lengths together: over all ranges, as close as in the narrowest."""
        bottom, top = self._ends(tau, log_lengths, np.float64(0.0))
        spacing = np.min(top - bottom) / (self.count - 1)
        low, high = np.min(bottom), np.max(top)
        return np.linspace(low, high, 1 + math.ceil((high - low) / spacing - 1e-9), retstep=True)

    def _ends(self, tau: Scalar, log_length: Scalars, shift: Scalar) -> tuple[Scalars, Scalars]:
        """Return where the nodes begin and end, for every length."""
        xp = namespace(tau, log_length, shift)
        mean_exponent = tau**2 / 2
        last = self.reach * tau + 6.0

        # by Jensen's inequality -log φ ≤ e^{y+τ²/2}, so L·log φ is above -1 at the first of the levels
        y = xp.linspace(-xp.max(log_length) - mean_exponent, last + xp.maximum(-shift, 0.0), _SEARCHED)
        log_fall = xp.log(-log_survival(y, tau, resolution=_ROUGH))
        log_others = xp.log(xp.maximum(xp.expm1(log_length), _UNDERFLOW))
        turn, top = (xp.interp(math.log(fall) - log_others, log_fall, y) for fall in (1.0, self.drop))
        top = xp.minimum(top, last - shift)
        turn = xp.minimum(xp.minimum(turn, top), -shift)

        # a token's part is at most e^{y+s+τ²/2}, so it is below the threshold at the first of the levels
        threshold = log_tilted(1, turn + shift, tau, resolution=_ROUGH) - self.drop
        y = xp.linspace(xp.min(threshold) - mean_exponent - shift, xp.max(turn), _SEARCHED)
        return xp.interp(threshold, log_tilted(1, y + shift, tau, resolution=_ROUGH), y), top


_DEFAULT_RESOLUTION = Resolution()
# For the search for the ends: it needs places, not values.
_ROUGH = Resolution(step=1.0)
# Levels between which the ends of the nodes are interpolated; they are at most a tenth of a logarithm too near.
_SEARCHED = 96
# The level at which about half of φ survives: e^{-e^u} is the probability that -u exceeds a Gumbel variable.
_HALF_SURVIVES = -0.45
# How much farther the nodes in g reach in their variable t than in g, at the largest τ.
_LARGEST_EXCESS = 9.0
# In place of zero others, so that their logarithm is finite.
_UNDERFLOW = 1e-300
# The largest τ of `square_given_others`, and the longest prompt of all integrals.
_LARGEST_SQUARE_TAU, _LARGEST_LOG_LENGTH = 30.0, 330.0


@public
def log_survival(y: Scalars, tau: Scalar, *, resolution: Resolution = _DEFAULT_RESOLUTION) -> Scalars:
    """Return `log φ(y) = log E exp(-e^{y+τg})`, g ~ N(0, 1).

    Where φ is above about one half, 1 - φ is integrated, since `φ^{L-1}` depends on it alone.

    Args:
      y: the levels, any shape, y ≤ 9τ.
      tau: standard deviation τ of the scores, shape (), 0 < τ ≤ 30.
      resolution: the nodes in g.

    Returns:
      log φ, of the same shape. The relative error is below 2e-12 for y ≤ 3τ, and below 1e-7 for 3τ < y ≤ 9τ, where
      $φ < e^{-5}$. There is no check of the domain; callers state their own.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    xp = namespace(y, tau)
    near_one = xp.asarray(y) < _HALF_SURVIVES
    lost = xp.expand_dims(near_one, -1)

    def integrand(u, _):
        """`1 - exp(-e^u)` where it is integrated, `exp(-e^u)` elsewhere."""
        exponential = xp.exp(xp.clip(u, -37.0, xp.where(lost, 5.0, 700.0)))
        factor = -xp.expm1(-exponential) / exponential
        return xp.where(lost, xp.minimum(u, 5.0), -exponential), xp.where(lost, factor, 1.0)

    (log_mean,) = _log_expectations(integrand, near_one, y, tau, resolution)
    return xp.where(near_one, xp.log1p(-xp.exp(xp.where(near_one, log_mean, -1.0))), log_mean)


@public
def log_tilted(power: int, y: Scalars, tau: Scalar, *, resolution: Resolution = _DEFAULT_RESOLUTION) -> Scalars:
    """Return `log E[e^{power·u} exp(-e^u)]` with u = y + τg, g ~ N(0, 1): the part of one token in a ratio.

    Args:
      power: the exponent, an integer ≥ 1.
      y: the levels, any shape, y ≤ 9τ.
      tau: standard deviation τ of the scores, shape (), 0 < τ ≤ 30.
      resolution: the nodes in g.

    Returns:
      The logarithm, of the same shape. Accuracy as `log_survival`.

    Source: derived here, see book/exact_finite_prompt. Transformations: jit, vmap, grad.
    """
    xp = namespace(y, tau)
    return _log_expectations(lambda u, _: (power * u - xp.exp(u), 1.0), power, y, tau, resolution)[0]


@public
def _log_tilted_moments(
    power: int, y: Scalars, tau: Scalar, *, resolution: Resolution = _DEFAULT_RESOLUTION
) -> tuple[Scalars, ...]:
    """Return `log E[e^{power·u} exp(-e^u)]` and `log E[(g - τ)² e^{power·u} exp(-e^u)]`, u = y + τg, g ~ N(0, 1)."""
    xp = namespace(y, tau)
    return _log_expectations(lambda u, g: (power * u - xp.exp(u), 1.0, (g - tau) ** 2), power, y, tau, resolution)


@public
def _crossing(holds: Callable, low: Scalars, high: Scalars, *, halvings: int) -> Any:
    """Return where `holds`, true at `low` and false beyond some point, turns false; by bisection of each entry."""

    if namespace(low, high) is np:
        return _crossing_in_numpy(holds, low, high, halvings)

    def halve(_, bracket):
        low, high = bracket
        middle = 0.5 * (low + high)
        inside = holds(middle)
        return jnp.where(inside, middle, low), jnp.where(inside, high, middle)

    low, high = jax.lax.fori_loop(0, halvings, halve, (low, high))
    return 0.5 * (low + high)


def _crossing_in_numpy(holds: Callable, low, high, halvings: int):
    """Four halvings at a time: a call of `holds` costs more than its fifteen values."""
    low, high = np.broadcast_arrays(np.asarray(low, float), high)
    for done in range(0, halvings, 4):
        parts = 2 ** min(4, halvings - done)
        step = (high - low) / parts
        inner = low + step * np.arange(1, parts).reshape(-1, *(1,) * low.ndim)
        low = low + step * np.sum(np.logical_and.accumulate(holds(inner)), axis=0)
        high = low + step
    return 0.5 * (low + high)


def _bracket(height: Float[AnyArray, " n"], drop: float) -> tuple[Any, Any]:
    """Return the first and the last place of a scan at which it is at most `drop` below its largest value."""
    xp = namespace(height)
    inside = height > xp.max(height) - drop
    return xp.argmax(inside), len(height) - 1 - xp.argmax(inside[::-1])


def _log_expectations(
    integrand: Callable, power: Any, y: Scalars, tau: Scalar, resolution: Resolution
) -> tuple[Scalars, ...]:
    """Return `log E[factor f(u)]`, u = y + τg, of each factor; `integrand(u, g)` returns log f and the factors.

    log f is concave, about `power·u` far left and with its edge at 0.
    """
    xp = namespace(y, tau)
    peak = power * tau - _lambert_w(y + power * tau**2, tau) / tau
    edge = xp.clip(-y / tau, peak, peak + resolution.reach)
    y, peak, edge = (xp.expand_dims(row, -1) for row in (y, peak, edge))
    height = integrand(y + tau * peak, peak)[0] - 0.5 * peak**2
    placed = (edge, height, *_offsets(tau, resolution))
    if xp is jnp:
        # the barrier keeps XLA from computing what belongs to a row again for every node of it (four times as slow)
        placed = jax.lax.optimization_barrier(placed)
    edge, height, offset, log_spacing = constant(*placed)
    g = edge + offset
    log_f, *factors = integrand(y + tau * g, g)
    terms = xp.exp(log_f - 0.5 * g**2 - height + log_spacing)
    shift = height[..., 0] - 0.5 * math.log(2 * math.pi)
    return tuple(xp.log(xp.sum(factor * terms, axis=-1)) + shift for factor in factors)


def _offsets(tau: Scalar, resolution: Resolution) -> tuple[Float[AnyArray, " m"], Float[AnyArray, " m"]]:
    """Return distances from the edge, and the logarithms of their spacing."""
    xp = namespace(tau)
    fine = 1.0 / xp.maximum(tau, 1.0)
    zone = 5.0 - xp.log(fine)
    coarse = 1.0 - fine
    # by how much t exceeds the distance; a compiled program has the nodes of the largest τ
    excess = _LARGEST_EXCESS if xp is jnp else float(np.fmin(coarse * zone, _LARGEST_EXCESS))
    # to the left: an edge at one end of the reach and an integrand at the other
    left, right = (int((sides * resolution.reach + excess) / resolution.step) for sides in (2, 1))
    t = resolution.step * xp.arange(-left, right + 1)
    offset = fine * t + coarse * (softplus(t - zone) - softplus(-t - zone))
    slope = fine + coarse * (sigmoid(t - zone) + sigmoid(-t - zone))
    return offset, xp.log(resolution.step * slope)


def _lambert_w(log_x: Scalars, tau: Scalar) -> Scalars:
    """Return `W(τ² e^{log_x})`, the root of `w + log w = log_x + 2 log τ`, to the few digits that a centre needs."""
    xp = namespace(log_x, tau)
    z = xp.maximum(log_x + 2 * xp.log(tau), -600.0)
    w = softplus(z)
    for _ in range(3):
        w = w * (1 + z - xp.log(w)) / (1 + w)
    return w


@public
def square_given_others(
    tau: Float[Array, "*#n"], log_others: Float[Array, "*#n"], *, nodes: int = 401
) -> Float[Array, "*n"]:
    """Return `E p²` of one token of score N(0, τ²), given the logarithm of the sum of the others' exponentials.

    For prompts that are drawn: L times its mean over them is E Σp², without the long tail that Σp² itself has where
    rare prompts carry its mean.

    Args:
      tau: standard deviation of the scores, |τ| ≤ 30.
      log_others: the logarithm, any number; the arrays broadcast.
      nodes: number of nodes of the trapezoid in the token's score.

    Returns:
      The mean, in [0, 1]. With the default nodes its relative error is below 1e-6 for |τ| ≤ 15, 1e-5 for |τ| ≤ 20 and
      2e-4 for |τ| ≤ 30; single precision adds its own rounding. NaN beyond.

    Source: derived here, see book/temperature_and_length. Transformations: jit, vmap, grad.
    """
    arrays = as_float(tau), as_float(log_others)
    dtype = jnp.result_type(*arrays)
    if few("square_given_others", *arrays):
        arrays = tuple(np.asarray(each, np.float64) for each in arrays)
    return as_array(_sum_over_scores(*arrays, nodes), dtype)


@jitted(static=(2,))
def _sum_over_scores(tau, log_others, nodes: int):
    xp = namespace(tau, log_others)
    tau = xp.abs(tau)
    reach = 18.0 + 2 * xp.minimum(tau, 4.5)[..., None]
    normal = reach * xp.linspace(0.0, 1.0, nodes, dtype=tau.dtype) - 9.0
    density = xp.exp(-(normal**2) / 2) / math.sqrt(2 * math.pi)
    weights = sigmoid(tau[..., None] * normal - log_others[..., None]) ** 2
    mean = reach[..., 0] / (nodes - 1) * xp.sum(weights * density, axis=-1)
    return xp.where(tau <= _LARGEST_SQUARE_TAU, mean, xp.nan)
