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

from lib._checks import is_concrete, public
from lib._namespace import are_few, constant, exact, known, log_softmax, logsumexp, namespace
from lib._types import AnyArray, Scalar, Scalars
from lib.finite_prompt import score_statistics
from lib.partition import _LARGEST_LOG_LENGTH, _crossing

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
      outside the domain. A few ms per pair for tilts up to 2, 20 ms up to 5 and 0.5 s at 14; a gradient costs five
      times as much.

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
    participation, error = _tabulated(_integrals, a, b, log_length)
    finer_participation, finer_error = _tabulated(_integrals, a, b, log_length, resolution=_FINER)
    single = [score_statistics(x**2, log_length).score_error for x in (a, b)]
    xp, scale = namespace(participation), [known(each) for each in single]
    changes = (
        xp.abs(finer_participation / participation - 1),
        xp.abs(finer_error - error) / xp.sqrt(scale[0] * scale[1]),
    )
    return jnp.asarray(2 * xp.maximum(*changes) + _ROUNDING)


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
    return _PairStatistics(*map(jnp.asarray, _tabulated(_integrals, a, b, log_length)))


@public
def _opposite_gaps(tilt: Scalars, log_length: Scalars) -> _PairStatistics:
    """Return `(P(a) - C(a, -a))/a²` and `(Q(a) - G̃(a, -a))/a²` at a tilt a, without the differences."""
    tilt, log_length = exact("lib.pairs._opposite_gaps", tilt, log_length)
    tilt = namespace(tilt).abs(tilt)
    return _PairStatistics(*map(jnp.asarray, _tabulated(_gap_integrals, tilt, -tilt, log_length)))


# --- the quadrature ---------------------------------------------------------------------------------------


class _Resolution(NamedTuple):
    """Steps and extents of the three trapezoids; the defaults reach rounding (see the tests)."""

    level_step: float = 0.32  # in s and t, where the integrand is smooth on the scale 1
    score_step: float = 0.25  # in g
    phase_step: float = 0.32  # in a g and b g, where a token's factor changes on the scale 1
    reach: float = 9.0  # standard deviations on both sides of every place that a moment tilts the normal to
    drop: float = 32.0  # natural logarithms that the integrand falls before it is cut

    def sizes(self) -> list[tuple[int, int]]:
        """Numbers of nodes in s (and t) and in g that are compiled; a pair takes the first that hold its window."""
        wider = 2 * (self.drop - 32.0)
        more = (0.32 / self.phase_step) * (self.reach / 9.0)
        return [(math.ceil((width + wider) / self.level_step), math.ceil(more * nodes)) for width, nodes in _GRIDS]


# Widths of the window in s and t, and nodes in g, at the default resolution.
_GRIDS = ((46.0, 170), (46.0, 600), (98.0, 370), (140.0, 700), (140.0, 1600), (275.0, 1060), (56.0, 3060))
# Those on which NumPy is as fast as XLA.
_SMALL_GRIDS = (0, 1)
_DEFAULT = _Resolution()
_FINER = _Resolution(level_step=0.24, score_step=0.18, phase_step=0.24, reach=10.0, drop=38.0)
_LARGEST_PRODUCT = 250_000  # multiplications of one matrix product
_HALVINGS, _ROUGH = 14, 400  # of the search for the upper ends, and its nodes in g


class _Window(NamedTuple):
    """The ends of the grids in s, t and g."""

    s: tuple[Scalar, Scalar]
    t: tuple[Scalar, Scalar]
    g: tuple[Scalar, Scalar]


def _window(a, b, log_length, resolution) -> _Window:
    """From the left the token's factor cuts, which falls like e^s; from the right the other tokens, φ^{L-1}."""
    a, b, log_length = constant(a, b, log_length)
    xp = namespace(a, b, log_length)
    tilts = xp.abs(xp.stack([a, b]))
    largest_score = xp.sqrt(2 * log_length)
    typical = xp.sum(xp.minimum(tilts**2 / 2, tilts * (largest_score + 1)))
    depth = resolution.drop + 2 * log_length + typical
    # the sum e^{-s} is about L e^{a²/2}, or that of its largest term where that is too rare to be seen
    rarest = xp.sqrt(2 * (log_length + resolution.drop))
    bottom = -xp.where(tilts > rarest, tilts * rarest, rarest**2 / 2 + tilts**2 / 2)
    rough = xp.linspace(-1.0, 1.0, _ROUGH) * (largest_score + resolution.reach)
    log_weight = log_softmax(-(rough**2) / 2)
    others = xp.maximum(xp.expm1(log_length), 1.0)

    def alive(s):
        size = xp.exp(xp.minimum(s[..., None] + tilts[:, None] * rough, 6.5))
        lost = xp.sum(xp.exp(log_weight) * -xp.expm1(-size), axis=-1)
        log_phi = logsumexp(log_weight - size, axis=-1)
        return others * xp.where(lost < 0.5, xp.log1p(-xp.minimum(lost, 0.5)), log_phi) > -depth

    top = _crossing(alive, bottom, 12 * tilts + 6, halvings=_HALVINGS)
    places = xp.stack([a, b, a + b, 2 * a, 2 * b, xp.zeros_like(a)])
    edge = largest_score + resolution.reach
    low = xp.maximum(xp.min(places) - resolution.reach, -edge)
    high = xp.minimum(xp.max(places) + resolution.reach, edge)
    return _Window((bottom[0], top[0]), (bottom[1], top[1]), (low, high))


def _guaranteed(a, b, log_length):
    xp = namespace(a, b, log_length)
    small = xp.maximum(xp.abs(a), xp.abs(b)) <= _LARGEST_TILT
    return small & (log_length >= 0) & (log_length <= _LARGEST_LOG_LENGTH)


def _placed(a, b, log_length, resolution: _Resolution):
    """The first grid whose steps are at most those of `resolution`, -1 if there is none; and arguments of integrals."""
    xp = namespace(a, b, log_length)
    inside = _guaranteed(a, b, log_length)
    a, b = xp.where(inside, a, 0.0), xp.where(inside, b, 0.0)
    log_length = xp.where(inside, log_length, 0.0)
    window = _window(a, b, log_length, resolution)
    (largest,) = constant(xp.maximum(xp.maximum(xp.abs(a), xp.abs(b)), 1e-3))
    width = xp.maximum(window.s[1] - window.s[0], window.t[1] - window.t[0])
    step = xp.minimum(resolution.score_step, resolution.phase_step / largest)
    levels = width / resolution.level_step + 1
    scores = (window.g[1] - window.g[0]) / step + 1
    holds = xp.stack([(levels <= rows) & (scores <= nodes) for rows, nodes in resolution.sizes()])
    grid = xp.where(inside & xp.any(holds), xp.argmax(holds), -1)
    return grid, (a, b, log_length, window)


def _with_nodes(integrals: Callable, a, b, log_length, resolution: _Resolution):
    """`integrals` of a traced pair on its grid, one of all that are compiled; NaN if there is none."""
    grid, arguments = _placed(a, b, log_length, resolution)
    branches = [partial(integrals, size=size) for size in resolution.sizes()]
    values = jax.lax.switch(jnp.maximum(grid, 0), branches, *arguments)
    return tuple(jnp.where(grid >= 0, value, jnp.nan) for value in values)


@lru_cache
def _compiled(integrals: Callable, size: tuple[int, int]) -> Callable:
    return jax.jit(partial(integrals, size=size))


def _tabulated(integrals: Callable, a, b, log_length, *, resolution: _Resolution = _DEFAULT):
    """The two `integrals` over arrays that broadcast: known pairs one by one, many of one grid compiled."""
    if not is_concrete(a, b, log_length):
        return jnp.vectorize(_differentiable(integrals, resolution))(a, b, log_length)
    columns = np.broadcast_arrays(a, b, log_length)
    values = np.full((2, columns[0].size), np.nan)
    with np.errstate(all="ignore"):
        rows = zip(*(column.ravel() for column in columns), strict=True)
        placed = [_placed(one, other, length, resolution) for one, other, length in rows]
        grids = np.array([grid for grid, _ in placed], int)
        for grid in set(grids.tolist()) - {-1}:
            size, places = resolution.sizes()[grid], np.flatnonzero(grids == grid)
            compiled = grid not in _SMALL_GRIDS or not are_few((integrals, size), places.size)
            function = _compiled(integrals, size) if compiled else partial(integrals, size=size)
            for place in places:
                values[:, place] = function(*placed[place][1])
    return tuple(column.reshape(columns[0].shape) for column in values)


def _trapezoid(ends: tuple[Scalar, Scalar], nodes: int):
    low, high = ends
    return namespace(low, high).linspace(low, high, nodes), (high - low) / (nodes - 1)


def _times(left: Float[AnyArray, "n m"], right: Float[AnyArray, "k m"]) -> Float[AnyArray, "n k"]:
    """`left @ rightᵀ`, by NumPy in slices so small that BLAS does not divide them among threads, which wait busily."""
    if namespace(left, right) is jnp:
        return left @ right.T
    slices = math.ceil(left.size * len(right) / _LARGEST_PRODUCT)
    return np.concatenate([rows @ right.T for rows in np.array_split(left, slices)])


class _Factors(NamedTuple):
    """One head's factors on a grid of levels s (rows) and scores g (columns), u = e^s, A = e^{ag}."""

    lost: Float[AnyArray, "n m"]
    kept: Float[AnyArray, "n m"]
    powers: tuple[Float[AnyArray, "n m"], ...]
    log_scales: tuple[Float[AnyArray, " n"], ...]


def _factors(tilt, s, g, *, largest: int) -> _Factors:
    xp = namespace(tilt, s, g)
    size = xp.exp(xp.minimum(s[:, None] + tilt * g, 6.5))  # e^{-size} is below 1e-288 there
    kept = xp.exp(-size)
    powers, log_scales = [], []
    for power in range(1, largest + 1):
        exponent = power * tilt * g - g**2 / 4
        (highest,) = constant(xp.max(exponent))
        powers.append(kept * xp.exp(exponent - highest))
        log_scales.append(power * s + highest)
    return _Factors(-xp.expm1(-size), kept, tuple(powers), tuple(log_scales))


def _log_phi(lost: Scalars) -> Scalars:
    """`log φ` from 1 - φ; where φ is below rounding every integrand is, too."""
    xp = namespace(lost)
    return xp.log1p(-xp.minimum(lost, 1 - 1e-16))


def _integrals(a, b, log_length, window: _Window, *, size: tuple[int, int]):
    """`C = L ∬ M_11 φ^{L-1}` and `G̃ = L ∬ E[(g-a)(g-b) uA vB e^{-uA-vB}] φ^{L-1} + L(L-1) ∬ F_a F_b φ^{L-2}`."""
    xp = namespace(a, b, log_length, *window.g)
    (s, s_step), (t, t_step) = (_trapezoid(ends, size[0]) for ends in (window.s, window.t))
    g, g_step = _trapezoid(window.g, size[1])
    density = g_step / math.sqrt(2 * math.pi)
    first, second = _factors(a, s, g, largest=2), _factors(b, t, g, largest=2)
    normal = density * xp.exp(-(g**2) / 2)
    lost = (first.lost @ normal)[:, None] + _times(first.kept * normal, second.lost)
    log_phi = _log_phi(lost)
    m11 = density * _times(first.powers[0], second.powers[0])
    errors = density * _times(first.powers[0] * ((g - a) * (g - b)), second.powers[0])
    root = density * xp.exp(-(g**2) / 4)
    m20 = _times(first.powers[1] * root, second.kept)
    m02 = _times(first.kept * root, second.powers[1])
    others = xp.expm1(log_length)
    log_m11 = log_length + first.log_scales[0][:, None] + second.log_scales[0]
    diagonal = xp.exp(log_m11 + others * log_phi)
    half = 0.5 * (others - 1) * log_phi
    mixed = xp.exp(log_m11 + half) * m11
    from_a = a * xp.exp(log_length + first.log_scales[1][:, None] + half) * m20 + b * mixed
    from_b = b * xp.exp(log_length + second.log_scales[1] + half) * m02 + a * mixed
    area = s_step * t_step
    participation = area * xp.sum(diagonal * m11)
    off_diagonal = -xp.expm1(-log_length) * xp.sum(from_a * from_b)
    return participation, area * (xp.sum(diagonal * errors) + off_diagonal)


def _values_and_slopes(integrals: Callable, a, b, log_length, window: _Window, *, size: tuple[int, int]):
    """The two `integrals`, shape (2,), and their derivatives by (a, b, log_length), shape (2, 3)."""

    def both(arguments):
        values = jnp.stack(integrals(*arguments, window, size=size))
        return values, values

    slopes, values = jax.jacrev(both, has_aux=True)(jnp.stack([a, b, log_length]))
    return values, slopes


@lru_cache
def _differentiable(integrals: Callable, resolution: _Resolution) -> Callable:
    """Return the two `integrals` as a function of traced (a, b, log_length) with derivatives, one pair at a time."""

    @jax.custom_batching.sequential_vmap
    def values_and_slopes(a, b, log_length):
        return _with_nodes(partial(_values_and_slopes, integrals), a, b, log_length, resolution)

    @jax.custom_batching.sequential_vmap
    def values_alone(a, b, log_length):
        return _with_nodes(integrals, a, b, log_length, resolution)

    @jax.custom_jvp
    def statistics(a, b, log_length):
        return values_alone(a, b, log_length)

    @statistics.defjvp
    def _(primals, tangents):
        values, slopes = values_and_slopes(*primals)
        return tuple(values), tuple(slopes @ jnp.stack(tangents))

    return statistics


def _gap_integrals(a, b, log_length, window: _Window, *, size: tuple[int, int]):
    """`(P(a) - C(a, -a))/a²` and `(Q(a) - G̃(a, -a))/a²` for b = -a < 0, without the differences."""
    del b
    xp = namespace(a, log_length, *window.g)
    s, step = _trapezoid(window.s, size[0])
    g, g_step = _trapezoid((xp.zeros_like(a), window.g[1]), size[1] // 2 + 1)
    density = 2 * g_step / math.sqrt(2 * math.pi) * xp.where(xp.arange(g.size) == 0, 0.5, 1.0)
    normal = density * xp.exp(-(g**2) / 2)
    root = density * xp.exp(-(g**2) / 4)

    large = xp.exp(xp.minimum(s[:, None] + a * g, 6.5))
    small = xp.exp(xp.minimum(s[:, None] - a * g, 6.5))
    kept_large, kept_small = xp.exp(-large), xp.exp(-small)
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
    participation = xp.sum(diagonal * (2 * odd_square + (even_even - odd_square) * fallen))

    cross = mean(even[1], odd[1], density * g)
    odd_second = mean(odd[1], odd[1], density * g**2)
    even_second = mean(even[1], even[1], density * g**2)
    errors = 2 * odd_second + 2 * a**2 * even_even - 2 * a * (cross + cross.T)
    opposite = even_second - odd_second - a**2 * (even_even - odd_square)
    one_token = xp.sum(diagonal * (errors + opposite * fallen))

    even_two, odd_two = mean(even[2], even[0], root), mean(odd[2], odd[0], root)

    def two_tokens(sign, log_phi):
        half = 0.5 * (others - 1) * log_phi
        m20 = xp.exp(log_length + log_scales[1][:, None] + half) * (even_two + sign * odd_two)
        mixed = sign * xp.exp(log_m11 + half) * (even_even + sign * odd_square)
        return xp.sum((m20 + mixed) * (m20.T + mixed))

    pairs = -xp.expm1(-log_length) * (two_tokens(1, log_phi) + two_tokens(-1, log_phi_opposite))
    area = step**2
    return area * participation / a**2, area * (one_token / a**2 + pairs)
