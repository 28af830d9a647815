"""Two softmax heads on one prompt of normal scores: exact averages of a pair of tilts.

Heads with keys `ω_h I` see the same normals $g_1$, …, $g_L$ at a query of length r, and head h weighs them by
`p(a_h) = softmax(a_h g)`, $a_h = ω_h r$. Two functions of a pair of tilts carry all second moments of their outputs:

    C(a, b) = E Σ_l p_l(a) p_l(b),        G̃(a, b) = E (ĝ(a) - a)(ĝ(b) - b),   ĝ(a) = Σ_l p_l(a) g_l.

Laplace's identity for both denominators, `1/(S(a)S(b)) = ∬ e^{-uS(a) - vS(b)} du dv` with $S(a) = Σ_l e^{a g_l}$, makes
each an integral over $u = e^s$ and $v = e^t$ of one-token moments `M_ij(s, t) = E[(uA)^i (vB)^j e^{-uA - vB}]`,
$A = e^{ag}$, $B = e^{bg}$. Given g the factors separate, so each moment is one matrix product over a grid in g. Derived
here.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import as_array, is_concrete, public
from lib._namespace import (
    constant,
    exact,
    in_numpy,
    known,
    log_softmax,
    logsumexp,
    namespace,
    one_at_a_time,
    with_slopes,
)
from lib._types import AnyArray, Scalar, Scalars
from lib.finite_prompt import score_statistics
from lib.partition import _LARGEST_LOG_LENGTH, _crossing, _lambert_w

__all__ = [
    "pair_participation",
    "pair_quadrature_error",
    "pair_score_error",
]

_LARGEST_TILT = 14.0
# The relative rounding of the sums of the two integrals.
_ROUNDING = 1e-12


class _PairStatistics(NamedTuple):
    """The two functions of a pair of tilts."""

    participation: Float[Array, "..."]
    score_error: Float[Array, "..."]


@public
def pair_participation(a: Scalars, b: Scalars, log_length: Scalars) -> Float[Array, "..."]:
    """Return `C(a, b) = E Σ_l p_l(a) p_l(b)`, p(a) = softmax(a g) of `L = exp(log_length)` standard normals g.

    C(a, a) is `participation(|a|)`, C(a, 0) = 1/L, C(-a, -b) = C(a, b); about $e^{ab}/L$ for long prompts.

    Args:
      a: tilt of the first head, of either sign, any shape, |a| ≤ 14.
      b: tilt of the second head, of either sign, any shape, |b| ≤ 14.
      log_length: natural logarithm of the prompt length, any shape, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      C > 0, of the broadcast shape, with a relative error below 1e-11 (`pair_quadrature_error` estimates it). NaN
      outside the domain. 1 ms per pair for tilts up to 2, 10 ms up to 6 and 0.2 s at 14. Traced programs contain
      several grids and compile long; a gradient costs five times as much.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    return _pair_statistics(a, b, log_length).participation


@public
def pair_score_error(a: Scalars, b: Scalars, log_length: Scalars) -> Float[Array, "..."]:
    """Return `G̃(a, b) = E (ĝ(a) - a)(ĝ(b) - b)`, $ĝ(a) = Σ_l p_l(a) g_l$, the covariance of two heads' score errors.

    G̃(a, a) is `score_error(|a|)`, G̃(-a, -b) = G̃(a, b), G̃(0, 0) = 1/L, and 1 + ab at L = 1. Heads of opposite tilts
    can have a negative or a vanishing G̃.

    Args:
      a: tilt of the first head, of either sign, any shape, |a| ≤ 14.
      b: tilt of the second head, of either sign, any shape, |b| ≤ 14.
      log_length: natural logarithm of the prompt length, any shape, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      G̃, of the broadcast shape, with an error below 1e-11 √(Q(a) Q(b)), Q the `score_error` of one head
      (`pair_quadrature_error` estimates it). NaN outside the domain. The cost is that of `pair_participation`.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    return _pair_statistics(a, b, log_length).score_error


@public
def pair_quadrature_error(a: Scalars, b: Scalars, log_length: Scalars) -> Float[Array, "..."]:
    """Return the accuracy of `pair_participation`, relative to C, and of `pair_score_error`, relative to √(Q(a) Q(b)).

    The larger of the two: twice the change made by finer steps and longer ranges of all three trapezoids, plus the
    rounding of the sums.

    Args:
      a: tilt of the first head, any shape, |a| ≤ 14.
      b: tilt of the second head, any shape, |b| ≤ 14.
      log_length: natural logarithm of the prompt length, any shape, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      The error, of the broadcast shape. NaN outside the domain. The cost is three times that of `pair_participation`.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap.
    """
    a, b, log_length = exact("lib.pairs.pair_quadrature_error", a, b, log_length)
    pairs = [_tabulated(_integrals, a, b, log_length, resolution=each) for each in (_DEFAULT, _FINER)]
    single = [score_statistics(x**2, log_length).score_error for x in (a, b)]
    ((participation, error), (finer_participation, finer_error)), scale = jax.tree.map(known, (pairs, single))
    xp = namespace(participation)
    changes = (
        xp.abs(finer_participation / participation - 1),
        xp.abs(finer_error - error) / xp.sqrt(scale[0] * scale[1]),
    )
    return as_array(2 * xp.maximum(*changes) + _ROUNDING)


@public
def _pair_statistics(a: Scalars, b: Scalars, log_length: Scalars) -> _PairStatistics:
    """Return C(a, b) and G̃(a, b) from one quadrature.

    Args:
      a: tilt of the first head, of either sign, any shape, |a| ≤ 14.
      b: tilt of the second head, of either sign, any shape, |b| ≤ 14.
      log_length: natural logarithm of the prompt length, any shape, 0 ≤ log_length ≤ 330; the arrays broadcast.

    Returns:
      The values of `pair_participation` and `pair_score_error`, with their errors; NaN outside the domain.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    a, b, log_length = exact("lib.pairs._pair_statistics", a, b, log_length)
    return _PairStatistics(*_tabulated(_integrals, a, b, log_length))


class _OppositeStatistics(NamedTuple):
    """Participation of one head, and what participation and score error lose between equal and opposite tilts."""

    participation: Float[Array, "..."]
    participation_gap: Float[Array, "..."]
    score_error_gap: Float[Array, "..."]


@public
def _opposite_statistics(tilt: Scalars, log_length: Scalars) -> _OppositeStatistics:
    """Return P(a), and `(P(a) - C(a, -a))/a²` and `(Q(a) - G̃(a, -a))/a²` without the differences, at a tilt a."""
    tilt, log_length = exact("lib.pairs._opposite_statistics", tilt, log_length)
    tilt = namespace(tilt).abs(tilt)
    return _OppositeStatistics(*_tabulated(_opposite_integrals, tilt, -tilt, log_length))


# --- the quadrature ---------------------------------------------------------------------------------------


class _Resolution(NamedTuple):
    """Steps and extents of the three trapezoids; the defaults reach rounding (see the tests)."""

    level_step: float = 0.28  # in s and t, to the right of the turn of `_Levels`
    score_step: float = 0.25  # in g
    phase_step: float = 0.32  # in a g and b g, where a token's factor changes on the scale 1
    reach: float = 9.0  # standard deviations on both sides of every place that a moment tilts the normal to
    drop: float = 32.0  # natural logarithms that the integrand falls before it is cut

    def sizes(self) -> list[tuple[int, int]]:
        """Numbers of nodes in s (and t) and in g that are compiled; a traced pair takes the first that hold it."""
        levels = (0.28 / self.level_step) * (self.drop / 32.0)
        scores = (0.32 / self.phase_step) * (self.reach / 9.0)
        return [(math.ceil(levels * rows), math.ceil(scores * nodes)) for rows, nodes in _GRIDS]


# Nodes in s and t, and in g, at the default resolution.
_GRIDS = ((48, 120), (80, 260), (220, 700), (160, 3060), (400, 1700), (800, 1100))
_DEFAULT = _Resolution()
_FINER = _Resolution(level_step=0.22, score_step=0.18, phase_step=0.24, reach=10.0, drop=38.0)
_LARGEST_PRODUCT = 250_000  # multiplications of one matrix product
_LARGEST_SIZE = 6.5  # of log uA: e^{-uA} is below 1e-288 there
_NEGLIGIBLE = 300.0  # e^{-uA} beyond counts as 0 in NumPy, whose products of smaller numbers are slow
_HALVINGS, _ROUGH = 10, 200  # of the search for the upper ends, and its nodes in g


class _Levels(NamedTuple):
    """Levels `s = turn + width (z - e^{-z})` between two ends of z.

    Left of the turn the integrand is smooth in u = e^s, and falls like u: there the steps in s grow.
    """

    turn: Scalar
    width: Scalar
    low: Scalar
    high: Scalar

    def nodes(self, count: int) -> tuple[Float[AnyArray, " n"], Float[AnyArray, " n"]]:
        """Return nodes in s, and their weights."""
        xp = namespace(*self)
        z = xp.linspace(self.low, self.high, count)
        falling = xp.exp(-z)
        step = self.width * (self.high - self.low) / (count - 1)
        return self.turn + self.width * (z - falling), step * (1 + falling)


class _Window(NamedTuple):
    """The levels s and t of the two heads, and the ends of the grid in g."""

    s: _Levels
    t: _Levels
    g: tuple[Scalar, Scalar]


def _window(a, b, log_length, resolution) -> _Window:
    """From the left the token's factor cuts, which falls like e^s; from the right the other tokens, φ^{L-1}."""
    a, b, log_length = constant(a, b, log_length)
    xp = namespace(a, b, log_length)
    tilts = xp.abs(xp.stack([a, b]))
    largest_score = xp.sqrt(2 * log_length)
    # the sum S is about L e^{a²/2}, or its largest term where that is too rare to be seen
    typical = xp.minimum(tilts**2 / 2, tilts * (largest_score + 1))
    depth = resolution.drop + 2 * log_length + xp.sum(typical)
    rarest = xp.sqrt(2 * (log_length + resolution.drop))
    bottom = -xp.where(tilts > rarest, tilts * rarest, rarest**2 / 2 + tilts**2 / 2)
    rough = xp.linspace(-1.0, 1.0, _ROUGH) * (largest_score + resolution.reach)
    log_weight = log_softmax(-(rough**2) / 2)
    others = xp.maximum(xp.expm1(log_length), 1.0)

    def alive(s):
        size = xp.exp(xp.minimum(s[..., None] + tilts[:, None] * rough, _LARGEST_SIZE))
        lost = xp.sum(xp.exp(log_weight) * -xp.expm1(-size), axis=-1)
        log_phi = logsumexp(log_weight - size, axis=-1)
        return others * xp.where(lost < 0.5, xp.log1p(-xp.minimum(lost, 0.5)), log_phi) > -depth

    top = _crossing(alive, bottom, 12 * tilts + 6, halvings=_HALVINGS)
    turn, width = -(log_length + typical + 2 * tilts), 1 + tilts / 2
    distances = ((end - turn) / width for end in (bottom, top))
    low, high = (x + _lambert_w(-x, 1.0) for x in distances)  # the roots z of z - e^{-z} = x
    places = xp.stack([a, b, a + b, 2 * a, 2 * b, xp.zeros_like(a)])
    edge = largest_score + resolution.reach
    left = xp.maximum(xp.min(places) - resolution.reach, -edge)
    right = xp.minimum(xp.max(places) + resolution.reach, edge)
    first, second = (_Levels(turn[k], width[k], low[k], high[k]) for k in (0, 1))
    return _Window(first, second, (left, right))


def _guaranteed(a, b, log_length):
    xp = namespace(a, b, log_length)
    small = xp.maximum(xp.abs(a), xp.abs(b)) <= _LARGEST_TILT
    return small & (log_length >= 0) & (log_length <= _LARGEST_LOG_LENGTH)


def _placed(a, b, log_length, resolution: _Resolution):
    """Whether a pair is in the domain, arguments of the integrals, and the numbers of levels and scores it needs."""
    xp = namespace(a, b, log_length)
    inside = _guaranteed(a, b, log_length)
    a, b, log_length = (xp.where(inside, value, 0.0) for value in (a, b, log_length))
    window = _window(a, b, log_length, resolution)
    (largest,) = constant(xp.maximum(xp.maximum(xp.abs(a), xp.abs(b)), 1e-3))
    step = xp.minimum(resolution.score_step, resolution.phase_step / largest)
    spans = xp.stack([levels.width * (levels.high - levels.low) for levels in (window.s, window.t)])
    needed = xp.max(spans) / resolution.level_step + 1, (window.g[1] - window.g[0]) / step + 1
    return inside, (a, b, log_length, window), needed


def _of_traced(integrals: Callable, a, b, log_length, resolution: _Resolution):
    """`integrals` of a pair on the first grid that holds it, of all that are compiled; NaN if none does."""
    inside, arguments, (levels, scores) = _placed(a, b, log_length, resolution)
    sizes = resolution.sizes()
    holds = jnp.stack([(levels <= rows) & (scores <= nodes) for rows, nodes in sizes])
    branches = [partial(integrals, size=size) for size in sizes]
    values = jax.lax.switch(jnp.argmax(holds), branches, *arguments)
    return tuple(jnp.where(inside & jnp.any(holds), value, jnp.nan) for value in values)


def _of_known(integrals: Callable, a, b, log_length, resolution: _Resolution):
    """`integrals` of a pair on a grid that just holds it, by NumPy."""
    inside, arguments, needed = _placed(a, b, log_length, resolution)
    levels, scores = map(math.ceil, needed)
    return tuple(np.where(inside, value, np.nan) for value in integrals(*arguments, size=(levels, scores)))


def _tabulated(integrals: Callable, a, b, log_length, *, resolution: _Resolution = _DEFAULT):
    """The `integrals` over arrays that broadcast."""
    if not is_concrete(a, b, log_length):
        return jnp.vectorize(_differentiable(integrals, resolution))(a, b, log_length)
    return in_numpy(partial(_of_known, integrals, resolution=resolution), a, b, log_length)


def _trapezoid(ends: tuple[Scalar, Scalar], nodes: int):
    low, high = ends
    return namespace(low, high).linspace(low, high, nodes), (high - low) / (nodes - 1)


def _times(left: Float[AnyArray, "n m"], right: Float[AnyArray, "k m"]) -> Float[AnyArray, "n k"]:
    """Return `left @ rightᵀ`, by NumPy in tiles so small that BLAS keeps them on one thread; several wait busily."""
    if namespace(left, right) is jnp:
        return left @ right.T
    side = max(math.isqrt(_LARGEST_PRODUCT // left.shape[1]), 1)
    product = np.empty((len(left), len(right)))
    for i in range(0, len(left), side):
        for j in range(0, len(right), side):
            product[i : i + side, j : j + side] = left[i : i + side] @ right[j : j + side].T
    return product


def _kept(size: Float[AnyArray, "n m"]) -> Float[AnyArray, "n m"]:
    """Return `e^{-size}`, by NumPy without the numbers that are negligible and slow."""
    kept = namespace(size).exp(-size)
    return kept * (size < _NEGLIGIBLE) if isinstance(kept, np.ndarray) else kept


def _log_phi(lost: Scalars) -> Scalars:
    """`log φ` from 1 - φ; where φ is below rounding every integrand is, too."""
    xp = namespace(lost)
    return xp.log1p(-xp.minimum(lost, 1 - 1e-16))


def _tilted_normal(tilt, g, g_step):
    """Return weights of `e^{tilt g}` under the standard normal, over the largest, and the logarithm of the largest."""
    xp = namespace(tilt, g)
    exponent = tilt * g - g**2 / 2
    (highest,) = constant(xp.max(exponent))
    return g_step / math.sqrt(2 * math.pi) * xp.exp(exponent - highest), highest


def _integrals(a, b, log_length, window: _Window, *, size: tuple[int, int]):
    """`C = L ∬ M_11 φ^{L-1}` and `G̃ = L ∬ E[(g-a)(g-b) uA vB e^{-uA-vB}] φ^{L-1} + L(L-1) ∬ F_a F_b φ^{L-2}`."""
    xp = namespace(a, b, log_length, *window.g)
    (s, s_weight), (t, t_weight) = (levels.nodes(size[0]) for levels in (window.s, window.t))
    g, g_step = _trapezoid(window.g, size[1])
    first, second = (xp.exp(xp.minimum(x[:, None] + tilt * g, _LARGEST_SIZE)) for tilt, x in ((a, s), (b, t)))
    kept, kept_second, lost_second = _kept(first), _kept(second), -xp.expm1(-second)
    normal = g_step / math.sqrt(2 * math.pi) * xp.exp(-(g**2) / 2)
    (both, log_both), (twice_a, log_twice_a), (twice_b, log_twice_b) = (
        _tilted_normal(tilt, g, g_step) for tilt in (a + b, 2 * a, 2 * b)
    )
    log_phi = _log_phi((-xp.expm1(-first) @ normal)[:, None] + _times(kept * normal, lost_second))
    m11, errors, m20, m02 = (
        _times(kept * weight, kept_second) for weight in (both, both * ((g - a) * (g - b)), twice_a, twice_b)
    )
    others = xp.expm1(log_length)
    log_m11 = log_length + s[:, None] + t + log_both
    alone = xp.exp(log_m11 + others * log_phi)
    half = log_length + 0.5 * (others - 1) * log_phi
    mixed = xp.exp(log_m11 - log_length + half) * m11
    from_a = a * xp.exp(2 * s[:, None] + log_twice_a + half) * m20 + b * mixed
    from_b = b * xp.exp(2 * t + log_twice_b + half) * m02 + a * mixed
    participation = s_weight @ (alone * m11) @ t_weight
    pairs = -xp.expm1(-log_length) * from_a * from_b
    return participation, s_weight @ (alone * errors + pairs) @ t_weight


@lru_cache
def _differentiable(integrals: Callable, resolution: _Resolution) -> Callable:
    """Return the `integrals` as a function of traced (a, b, log_length) with derivatives, one pair at a time."""

    def slopes(a, b, log_length, window, *, size):
        return with_slopes(partial(integrals, window=window, size=size), jax.jacrev)(a, b, log_length)

    return one_at_a_time(*(partial(_of_traced, each, resolution=resolution) for each in (integrals, slopes)))


def _opposite_integrals(a, b, log_length, window: _Window, *, size: tuple[int, int]):
    """P(a), and `(P(a) - C(a, -a))/a²` and `(Q(a) - G̃(a, -a))/a²` for b = -a < 0, without the differences."""
    del b
    xp = namespace(a, log_length, *window.g)
    s, weight = window.s.nodes(size[0])
    g, g_step = _trapezoid((xp.zeros_like(a), window.g[1]), size[1] // 2 + 1)
    density = 2 * g_step / math.sqrt(2 * math.pi) * xp.where(xp.arange(g.size) == 0, 0.5, 1.0)
    normal = density * xp.exp(-(g**2) / 2)
    root = density * xp.exp(-(g**2) / 4)

    large = xp.exp(xp.minimum(s[:, None] + a * g, _LARGEST_SIZE))
    small = xp.exp(xp.minimum(s[:, None] - a * g, _LARGEST_SIZE))
    kept_large, kept_small = _kept(large), _kept(small)
    kept_change = kept_small * xp.expm1(large * xp.expm1(-2 * a * g))
    lost_even = -0.5 * (xp.expm1(-large) + xp.expm1(-small))
    even, odd, log_scales = [0.5 * (kept_large + kept_small)], [0.5 * kept_change], []
    for power in (1, 2):
        exponent = power * a * g - g**2 / 4
        (highest,) = constant(xp.max(exponent))
        up, down = xp.exp(exponent - highest), xp.exp(exponent - 2 * power * a * g - highest)
        growth = -up * xp.expm1(-2 * power * a * g)
        even.append(0.5 * (up * kept_large + down * kept_small))
        odd.append(0.5 * (growth * kept_large + down * kept_change))
        log_scales.append(power * s + highest)

    def mean(left, right, weight):
        return _times(left * weight, right)

    odd_odd = mean(odd[0], odd[0], normal)
    lost = (lost_even @ normal)[:, None] + mean(even[0], lost_even, normal)
    log_phi, log_phi_opposite = _log_phi(lost - odd_odd), _log_phi(lost + odd_odd)
    others = xp.expm1(log_length)
    change = others * xp.log1p(2 * odd_odd / xp.maximum(1 - lost - odd_odd, 1e-16))
    log_m11 = log_length + log_scales[0][:, None] + log_scales[0]
    diagonal = xp.exp(log_m11 + others * log_phi)
    fallen = -xp.expm1(-change)
    even_even, odd_square = mean(even[1], even[1], density), mean(odd[1], odd[1], density)
    participation = diagonal * (2 * odd_square + (even_even - odd_square) * fallen)

    cross = mean(even[1], odd[1], density * g)
    odd_second = mean(odd[1], odd[1], density * g**2)
    even_second = mean(even[1], even[1], density * g**2)
    errors = 2 * odd_second + 2 * a**2 * even_even - 2 * a * (cross + cross.T)
    opposite = even_second - odd_second - a**2 * (even_even - odd_square)
    one_token = diagonal * (errors + opposite * fallen)

    even_two, odd_two = mean(even[2], even[0], root), mean(odd[2], odd[0], root)

    def two_tokens(sign, log_phi):
        half = 0.5 * (others - 1) * log_phi
        m20 = xp.exp(log_length + log_scales[1][:, None] + half) * (even_two + sign * odd_two)
        mixed = sign * xp.exp(log_m11 + half) * (even_even + sign * odd_square)
        return (m20 + mixed) * (m20.T + mixed)

    pairs = -xp.expm1(-log_length) * (two_tokens(1, log_phi) + two_tokens(-1, log_phi_opposite))
    log_square = log_length + log_scales[1] + others * _log_phi(lost_even @ normal)
    alone = weight @ (xp.exp(log_square) * (even[2] @ root))
    return alone, weight @ (participation / a**2) @ weight, weight @ (one_token / a**2 + pairs) @ weight
