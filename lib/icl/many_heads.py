"""Several softmax heads on in-context linear regression: exact risks, best values, and the best opposite pair.

With isotropic covariates all heads with keys `ω_h I` see the same normals $g_1$, …, $g_L$ at a query of length r, and
head h weighs them by `p(a_h) = softmax(a_h g)`, $a_h = ω_h r$. Two functions of a pair of tilts carry the risk:

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
from jaxtyping import Array, Bool, Float, Real

from lib._checks import as_float, is_concrete, public, require_float64
from lib.finite_prompt import Scalar, Scalars, score_statistics
from lib.icl.averages import _few_radii
from lib.icl.linear_regression import LinearRegression
from lib.partition import crossing

LARGEST_TILT = 14.0
LARGEST_LOG_LENGTH = 330.0
# The relative rounding of the sums of the two integrals.
ROUNDING = 1e-12


class PairStatistics(NamedTuple):
    """The two functions of a pair of tilts.

    Attributes:
      participation: C(a, b), of the shape of the arguments.
      score_error: G̃(a, b), of the shape of the arguments.
    """

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
      outside the domain.
      A few ms per pair for tilts up to 2, 20 ms up to 5 and 0.5 s at 14; a gradient costs five times as much.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    return pair_statistics(a, b, log_length).participation


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
    return pair_statistics(a, b, log_length).score_error


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
    a, b, log_length = _exact("lib.icl.pair_quadrature_error", a, b, log_length)
    participation, error = _tabulated(_integrals, a, b, log_length)
    finer_participation, finer_error = _tabulated(_integrals, a, b, log_length, resolution=_FINER)
    single = [score_statistics(x**2, log_length).score_error for x in (a, b)]
    changes = (
        jnp.abs(finer_participation / participation - 1),
        jnp.abs(finer_error - error) / jnp.sqrt(single[0] * single[1]),
    )
    return 2 * jnp.maximum(*changes) + ROUNDING


@public
def pair_statistics(a: Scalars, b: Scalars, log_length: Scalars) -> PairStatistics:
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
    a, b, log_length = _exact("lib.icl.pair_statistics", a, b, log_length)
    return PairStatistics(*_tabulated(_integrals, a, b, log_length))


def _exact(owner: str, *values: Scalars) -> tuple[Float[Array, "..."], ...]:
    arrays = tuple(as_float(value) for value in values)
    for array in arrays:
        require_float64(owner, array)
    return arrays


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
_DEFAULT = _Resolution()
_FINER = _Resolution(level_step=0.24, score_step=0.18, phase_step=0.24, reach=10.0, drop=38.0)
_HALVINGS, _ROUGH = 14, 400  # of the search for the upper ends, and its nodes in g


class _Window(NamedTuple):
    """The ends of the grids in s, t and g."""

    s: tuple[Float[Array, ""], Float[Array, ""]]
    t: tuple[Float[Array, ""], Float[Array, ""]]
    g: tuple[Float[Array, ""], Float[Array, ""]]


def _window(a, b, log_length, resolution) -> _Window:
    """From the left the token's factor cuts, which falls like e^s; from the right the other tokens, φ^{L-1}.

    The depth allows for C itself, whose logarithm is above `-log_length - typical`.
    """
    a, b, log_length = (jax.lax.stop_gradient(x) for x in (a, b, log_length))
    tilts = jnp.abs(jnp.stack([a, b]))
    largest_score = jnp.sqrt(2 * log_length)
    typical = jnp.sum(jnp.minimum(tilts**2 / 2, tilts * (largest_score + 1)))
    depth = resolution.drop + 2 * log_length + typical
    # the sum e^{-s} is about L e^{a²/2}, or that of its largest term where that is too rare to be seen
    rarest = jnp.sqrt(2 * (log_length + resolution.drop))
    bottom = -jnp.where(tilts > rarest, tilts * rarest, rarest**2 / 2 + tilts**2 / 2)
    rough = jnp.linspace(-1.0, 1.0, _ROUGH) * (largest_score + resolution.reach)
    log_weight = jax.nn.log_softmax(-(rough**2) / 2)
    others = jnp.maximum(jnp.expm1(log_length), 1.0)

    def alive(s):
        size = jnp.exp(jnp.minimum(s[:, None] + tilts[:, None] * rough, 6.5))
        lost = jnp.sum(jnp.exp(log_weight) * -jnp.expm1(-size), axis=1)
        log_phi = jax.nn.logsumexp(log_weight - size, axis=1)
        return others * jnp.where(lost < 0.5, jnp.log1p(-jnp.minimum(lost, 0.5)), log_phi) > -depth

    top = crossing(alive, bottom, 12 * tilts + 6, halvings=_HALVINGS)
    places = jnp.stack([a, b, a + b, 2 * a, 2 * b, jnp.zeros_like(a)])
    edge = largest_score + resolution.reach
    low = jnp.maximum(jnp.min(places) - resolution.reach, -edge)
    high = jnp.minimum(jnp.max(places) + resolution.reach, edge)
    return _Window((bottom[0], top[0]), (bottom[1], top[1]), (low, high))


def _guaranteed(a, b, log_length):
    small = jnp.maximum(jnp.abs(a), jnp.abs(b)) <= LARGEST_TILT
    return small & (log_length >= 0) & (log_length <= LARGEST_LOG_LENGTH)


def _placed(a, b, log_length, resolution: _Resolution):
    """The first grid whose steps are at most those of `resolution`, -1 if there is none; and arguments of integrals."""
    inside = _guaranteed(a, b, log_length)
    a, b = jnp.where(inside, a, 0.0), jnp.where(inside, b, 0.0)
    log_length = jnp.where(inside, log_length, 0.0)
    window = _window(a, b, log_length, resolution)
    largest = jax.lax.stop_gradient(jnp.maximum(jnp.maximum(jnp.abs(a), jnp.abs(b)), 1e-3))
    width = jnp.maximum(window.s[1] - window.s[0], window.t[1] - window.t[0])
    step = jnp.minimum(resolution.score_step, resolution.phase_step / largest)
    levels = width / resolution.level_step + 1
    scores = (window.g[1] - window.g[0]) / step + 1
    holds = jnp.stack([(levels <= rows) & (scores <= nodes) for rows, nodes in resolution.sizes()])
    grid = jnp.where(inside & jnp.any(holds), jnp.argmax(holds), -1)
    return grid, (a, b, log_length, window)


_placed_alone = jax.jit(_placed, static_argnums=3)


def _with_nodes(integrals: Callable, a, b, log_length, resolution: _Resolution):
    """`integrals` of a traced pair on its grid, one of all that are compiled; NaN if there is none."""
    grid, arguments = _placed(a, b, log_length, resolution)
    branches = [partial(integrals, size=size) for size in resolution.sizes()]
    values = jax.lax.switch(jnp.maximum(grid, 0), branches, *arguments)
    return tuple(jnp.where(grid >= 0, value, jnp.nan) for value in values)


@lru_cache
def _on_grid(integrals: Callable, size: tuple[int, int]) -> Callable:
    return jax.jit(partial(integrals, size=size))


def _tabulated(integrals: Callable, a, b, log_length, *, resolution: _Resolution = _DEFAULT):
    """The two `integrals` over arrays that broadcast; concrete pairs compile only the grids that they need."""
    if not is_concrete(a, b, log_length):
        return jnp.vectorize(_differentiable(integrals, resolution))(a, b, log_length)
    columns = np.broadcast_arrays(a, b, log_length)
    values = np.full((2, columns[0].size), np.nan)
    for place, pair in enumerate(zip(*(column.ravel() for column in columns), strict=True)):
        grid, arguments = _placed_alone(*pair, resolution)
        if grid >= 0:
            values[:, place] = _on_grid(integrals, resolution.sizes()[grid])(*arguments)
    return tuple(jnp.asarray(column).reshape(columns[0].shape) for column in values)


def _trapezoid(ends: tuple[Float[Array, ""], Float[Array, ""]], nodes: int):
    low, high = ends
    return jnp.linspace(low, high, nodes), (high - low) / (nodes - 1)


class _Factors(NamedTuple):
    """One head's factors on a grid of levels s (rows) and scores g (columns), u = e^s, A = e^{ag}.

    `lost` is `1 - e^{-uA}`, `kept` is `e^{-uA}`, and `(uA)^i e^{-uA} e^{-g²/4}` is `e^{is + scale_i} powers_i`.
    """

    lost: Float[Array, "n m"]
    kept: Float[Array, "n m"]
    powers: tuple[Float[Array, "n m"], ...]
    log_scales: tuple[Float[Array, " n"], ...]


def _factors(tilt, s, g, *, largest: int) -> _Factors:
    size = jnp.exp(jnp.minimum(s[:, None] + tilt * g, 6.5))  # e^{-size} is below 1e-288 there
    kept = jnp.exp(-size)
    powers, log_scales = [], []
    for power in range(1, largest + 1):
        exponent = power * tilt * g - g**2 / 4
        highest = jax.lax.stop_gradient(jnp.max(exponent))
        powers.append(kept * jnp.exp(exponent - highest))
        log_scales.append(power * s + highest)
    return _Factors(-jnp.expm1(-size), kept, tuple(powers), tuple(log_scales))


def _log_phi(lost: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log φ` from 1 - φ; where φ is below rounding every integrand is, too."""
    return jnp.log1p(-jnp.minimum(lost, 1 - 1e-16))


def _integrals(a, b, log_length, window: _Window, *, size: tuple[int, int]):
    """`C = L ∬ M_11 φ^{L-1}` and `G̃ = L ∬ E[(g-a)(g-b) uA vB e^{-uA-vB}] φ^{L-1} + L(L-1) ∬ F_a F_b φ^{L-2}`.

    `F_a = a M_20 + b M_11` is `-E[(g-a) uA e^{-uA-vB}]` by Stein's identity, and `F_b = b M_02 + a M_11` its mirror.
    """
    (s, s_step), (t, t_step) = (_trapezoid(ends, size[0]) for ends in (window.s, window.t))
    g, g_step = _trapezoid(window.g, size[1])
    density = g_step / math.sqrt(2 * math.pi)
    first, second = _factors(a, s, g, largest=2), _factors(b, t, g, largest=2)
    normal = density * jnp.exp(-(g**2) / 2)
    lost = (first.lost @ normal)[:, None] + (first.kept * normal) @ second.lost.T
    log_phi = _log_phi(lost)
    one_one = density * first.powers[0] @ second.powers[0].T
    errors = density * (first.powers[0] * ((g - a) * (g - b))) @ second.powers[0].T
    root = density * jnp.exp(-(g**2) / 4)
    two_none = (first.powers[1] * root) @ second.kept.T
    none_two = (first.kept * root) @ second.powers[1].T
    others = jnp.expm1(log_length)
    log_one_one = log_length + first.log_scales[0][:, None] + second.log_scales[0]
    diagonal = jnp.exp(log_one_one + others * log_phi)
    half = 0.5 * (others - 1) * log_phi
    mixed = jnp.exp(log_one_one + half) * one_one
    from_a = a * jnp.exp(log_length + first.log_scales[1][:, None] + half) * two_none + b * mixed
    from_b = b * jnp.exp(log_length + second.log_scales[1] + half) * none_two + a * mixed
    area = s_step * t_step
    participation = area * jnp.sum(diagonal * one_one)
    off_diagonal = -jnp.expm1(-log_length) * jnp.sum(from_a * from_b)
    return participation, area * (jnp.sum(diagonal * errors) + off_diagonal)


@lru_cache
def _differentiable(integrals: Callable, resolution: _Resolution) -> Callable:
    """Return the two `integrals` as a function of traced (a, b, log_length) with derivatives, one pair at a time.

    Sequential also under `vmap`, so that the size of the grid depends on the pair. The derivatives are plain numbers,
    computed with the values inside a branch of `_with_nodes`: reverse mode keeps six numbers per pair.
    """

    def with_slopes(a, b, log_length, window: _Window, *, size: tuple[int, int]):
        def both(arguments):
            values = jnp.stack(integrals(*arguments, window, size=size))
            return values, values

        slopes, values = jax.jacrev(both, has_aux=True)(jnp.stack([a, b, log_length]))
        return values, slopes

    @jax.custom_batching.sequential_vmap
    def values_and_slopes(a, b, log_length):
        return _with_nodes(with_slopes, a, b, log_length, resolution)

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
    """`(P(a) - C(a, -a))/a²` and `(Q(a) - G̃(a, -a))/a²` for b = -a < 0, without the differences.

    With each factor split into its even part e and its odd part o in g, `M_ij(a, a) = ⟨e_i e_j⟩ + ⟨o_i o_j⟩` and
    `M_ij(a, -a) = ⟨e_i e_j⟩ - ⟨o_i o_j⟩`, so that the differences are products of odd parts.
    """
    del b
    s, step = _trapezoid(window.s, size[0])
    g, g_step = _trapezoid((jnp.zeros_like(a), window.g[1]), size[1] // 2 + 1)
    density = 2 * g_step / math.sqrt(2 * math.pi) * jnp.ones_like(g).at[0].set(0.5)
    normal = density * jnp.exp(-(g**2) / 2)
    root = density * jnp.exp(-(g**2) / 4)

    large = jnp.exp(jnp.minimum(s[:, None] + a * g, 6.5))
    small = jnp.exp(jnp.minimum(s[:, None] - a * g, 6.5))
    kept_large, kept_small = jnp.exp(-large), jnp.exp(-small)
    kept_change = kept_small * jnp.expm1(large * jnp.expm1(-2 * a * g))
    lost_even = -0.5 * (jnp.expm1(-large) + jnp.expm1(-small))
    even, odd, log_scales = [0.5 * (kept_large + kept_small)], [0.5 * kept_change], []
    for power in (1, 2):
        exponent = power * a * g - g**2 / 4
        highest = jax.lax.stop_gradient(jnp.max(exponent))
        up, down = jnp.exp(exponent - highest), jnp.exp(exponent - 2 * power * a * g - highest)
        growth = -up * jnp.expm1(-2 * power * a * g)
        even.append(0.5 * (up * kept_large + down * kept_small))
        odd.append(0.5 * (growth * kept_large + down * kept_change))
        log_scales.append(power * s + highest)

    def mean(left, right, weight):
        return (left * weight) @ right.T

    odd_odd = mean(odd[0], odd[0], normal)
    lost = (lost_even @ normal)[:, None] + mean(even[0], lost_even, normal)
    log_phi, log_phi_opposite = _log_phi(lost - odd_odd), _log_phi(lost + odd_odd)
    others = jnp.expm1(log_length)
    change = others * jnp.log1p(2 * odd_odd / jnp.maximum(1 - lost - odd_odd, 1e-16))
    log_one_one = log_length + log_scales[0][:, None] + log_scales[0]
    diagonal = jnp.exp(log_one_one + others * log_phi)
    fallen = -jnp.expm1(-change)
    even_even, odd_square = mean(even[1], even[1], density), mean(odd[1], odd[1], density)
    participation = jnp.sum(diagonal * (2 * odd_square + (even_even - odd_square) * fallen))

    cross = mean(even[1], odd[1], density * g)
    odd_second = mean(odd[1], odd[1], density * g**2)
    even_second = mean(even[1], even[1], density * g**2)
    errors = 2 * odd_second + 2 * a**2 * even_even - 2 * a * (cross + cross.T)
    opposite = even_second - odd_second - a**2 * (even_even - odd_square)
    one_token = jnp.sum(diagonal * (errors + opposite * fallen))

    even_two, odd_two = mean(even[2], even[0], root), mean(odd[2], odd[0], root)

    def two_tokens(sign, log_phi):
        half = 0.5 * (others - 1) * log_phi
        two_none = jnp.exp(log_length + log_scales[1][:, None] + half) * (even_two + sign * odd_two)
        mixed = sign * jnp.exp(log_one_one + half) * (even_even + sign * odd_square)
        return jnp.sum((two_none + mixed) * (two_none.T + mixed))

    pairs = -jnp.expm1(-log_length) * (two_tokens(1, log_phi) + two_tokens(-1, log_phi_opposite))
    area = step**2
    return area * participation / a**2, area * (one_token / a**2 + pairs)


# --- heads on regression ----------------------------------------------------------------------------------

# Nodes in the length of the query, and natural logarithms that the integrand falls beyond the last.
_RADII, _RADIUS_DROP = 40, 34.0


@public
def heads_risk(
    task: LinearRegression,
    omega: Float[Array, " h"] | Float[np.ndarray, " h"],
    mu: Float[Array, " k"] | Float[np.ndarray, " k"],
    log_length: Scalar,
) -> Float[Array, ""]:
    """Return `½ E (ŷ - y)²` of the sum of H softmax heads, head h with scores `ω_h ⟨x_l, x_q⟩` and values `μ_h y_l`.

    `2R = s² + τ_w² [δ² d + 2δ Σ_h μ_h ω_h E r²P(ω_h r)] + μᵀNμ` with δ = 1 - μ·ω, r² ~ χ²_d, and
    `N_hk = E [τ_w² G̃ + (τ_w² (d - 1) + s²) C](ω_h r, ω_k r)`. Head h is `block_attention(ω_h I, μ_h)`.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys ω, shape (H,), H ≥ 1, of either sign. Tilts |ω| r up to 14 are computed, r up to √d + √(68 + 2 ln L)
        for large keys: the domain is |ω| ≤ 1.2 for d = 5 and L = 100, and |ω| ≤ 0.47 for the longest prompts.
      mu: values μ, shape (H,), of either sign.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      The risk, shape (), the noise of the query's label included. NaN outside the domain. Its relative error is below
      1e-8, except where δ is itself a rounding error, and for opposite keys
      below 0.01, whose values cancel (`best_pair` avoids both). The cost is 40 ms for the
      heads alone, and 40 times that of `pair_participation` for each pair of heads.

    Raises:
      ValueError: if a covariance of `task` is not the identity, if the shapes differ, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    dimension, omega, log_length = _isotropic("heads_risk", task, omega, log_length)
    mu = as_float(mu)
    if mu.shape != omega.shape:
        raise ValueError(
            "`heads_risk(omega, mu)` needs one key and one value per head, because a head has both. "
            f"Got shapes {omega.shape} and {mu.shape}."
        )
    noise, shrinkage = _head_moments(task, dimension, omega, log_length)
    missing = 1 - mu @ omega
    bias = task.task_scale**2 * (missing**2 * dimension + 2 * missing * mu @ shrinkage)
    return 0.5 * (task.noise_std**2 + bias + mu @ noise @ mu)


@public
def best_values(
    task: LinearRegression, omega: Float[Array, " h"] | Float[np.ndarray, " h"], log_length: Scalar
) -> tuple[Float[Array, " h"], Float[Array, ""]]:
    """Return the values μ that minimise `heads_risk` at the keys ω, and the risk there.

    The minimum-norm μ where several minimise it: heads with one key share its value, and all values are 0 at L = 1.
    Solved with `L N`, `1 - μ·ω` and the excess risk as unknowns, so that no digits are lost for long prompts.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys ω, shape (H,), H ≥ 1, of either sign; the domain is that of `heads_risk`.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      (μ of shape (H,), risk of shape ()): half the mean square, label noise included. The excess over the noise keeps
      its relative accuracy, about 1e-8, at any L. Singular values below 1e-11 of the largest count as 0, so keys
      that differ by less than about 1e-5 count as equal. The gradient of the risk is exact also where keys coincide;
      that of μ is then the least-squares one. NaN outside the domain. The cost is that of `heads_risk`.

    Raises:
      ValueError: if a covariance of `task` is not the identity, if `omega` has no head, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    dimension, omega, log_length = _isotropic("best_values", task, omega, log_length)
    noise, shrinkage = _head_moments(task, dimension, omega, log_length)
    return _least(task, omega, log_length, noise, shrinkage)


@public
def best_centred_values(
    task: LinearRegression, omega: Float[Array, " h"] | Float[np.ndarray, " h"], log_length: Scalar
) -> tuple[Float[Array, " h"], Float[Array, ""]]:
    """Return the values μ that minimise `centred_heads_risk` at the keys ω, and the risk there.

    `best_values` with `(τ_w² d + s²)/L` subtracted from every entry of N.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys ω, shape (H,), H ≥ 1, of either sign; the domain is that of `heads_risk`.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      (μ of shape (H,), risk of shape ()): half the mean square, label noise included. Digits are lost in proportion to
      1/ω² at small keys: the excess has a relative accuracy of about 1e-8 for |ω| ≥ 0.01. NaN outside the domain.

    Raises:
      ValueError: as `best_values`.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    dimension, omega, log_length = _isotropic("best_centred_values", task, omega, log_length)
    noise, shrinkage = _head_moments(task, dimension, omega, log_length)
    return _least(task, omega, log_length, noise - _power(task) * jnp.exp(-log_length), shrinkage)


def _least(task, omega, log_length, noise, shrinkage):
    """The values that minimise the risk with these moments of the heads, and the risk."""
    heads = omega.shape[0]
    power, length = task.task_scale**2, jnp.exp(log_length)
    untouched = power * task.dimension  # the excess of the output 0
    # stationarity in μ and in δ = 1 - μ·ω with a multiplier for the latter: the multiplier is the excess 2R - s²
    unit = 1 / (1 / length + jax.lax.stop_gradient(jnp.linalg.norm(omega)))
    column = jnp.concatenate([-omega, -jnp.ones(1) / length]) * unit
    matrix = jnp.block([[length * noise, power * length * shrinkage[:, None]], [power * shrinkage, untouched]])
    matrix = jnp.block([[matrix, column[:, None]], [omega, jnp.ones(2).at[1].set(0.0)]])
    target = jnp.zeros(heads + 2).at[-1].set(1.0)
    finite = jnp.all(jnp.isfinite(matrix))
    frozen = jax.lax.stop_gradient(jnp.where(finite, matrix, jnp.eye(heads + 2)))
    inverse = jnp.linalg.pinv(frozen, rtol=1e-11)
    solution = inverse @ target
    solution = solution + inverse @ (target - matrix @ solution)
    alone = log_length > 0  # a single token has the same answer at all keys
    mu = jnp.where(alone, solution[:heads], 0 * solution[:heads])
    excess = jnp.where(alone, solution[-1] * unit / length, untouched)
    return mu, jnp.where(finite, 0.5 * (task.noise_std**2 + excess), jnp.nan)


@public
def centred_heads_risk(
    task: LinearRegression,
    omega: Float[Array, " h"] | Float[np.ndarray, " h"],
    mu: Float[Array, " k"] | Float[np.ndarray, " k"],
    log_length: Scalar,
) -> Float[Array, ""]:
    """Return the risk of heads from whose softmax weights 1/L is subtracted: values $μ_h Σ_l (p_l - 1/L) y_l$.

    It is `heads_risk - ½ (Σ_h μ_h)² (τ_w² d + s²)/L`: C, G̃, P and Q lose 1/L each, and E ĝ does not change.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys, shape (H,), as in `heads_risk`.
      mu: values, shape (H,).
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      The risk, shape (): half the mean square, label noise included. NaN outside the domain of `heads_risk`.

    Raises:
      ValueError: as `heads_risk`.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    average = _power(task) * jnp.exp(-as_float(log_length)) * jnp.sum(as_float(mu)) ** 2
    return heads_risk(task, omega, mu, log_length) - 0.5 * average


@public
def debiased_descent(task: LinearRegression, log_length: Scalar) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the best step η and the risk of one step of debiased gradient descent, the limit of a pair with keys → 0.

    The prediction is `(η/L) Σ_l (y_l - ȳ) ⟨x_l - x̄, x_q⟩`; η = L/(L + d + ς) with $ς = s²/τ_w²$, and
    `2R = τ_w² d + s² - τ_w² d (L - 1)/(L + d + ς)`.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      log_length: natural logarithm of the prompt length L ≥ 1, shape ().

    Returns:
      (η of shape (), risk of shape ()): half the mean square, label noise included.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here; η is that of [He25]. Transformations: jit, vmap, grad.
    """
    dimension, log_length = _identity("debiased_descent", task), _exact("debiased_descent", log_length)[0]
    inverse = jnp.exp(-log_length)
    step = 1 / (1 + (dimension + _noise_ratio(task)) * inverse)
    excess = task.task_scale**2 * dimension * inverse * (dimension + 1 + _noise_ratio(task)) * step
    return step, 0.5 * (task.noise_std**2 + excess)


@public
def long_prompt_covariance(task: LinearRegression, product: Scalars) -> Float[Array, "..."]:
    """Return K(s), the limit of L times the covariance of two heads' outputs, averaged over queries; $s = ω_h ω_k$.

    `K(s) = (τ_w² d + s_noise²)(1 - 2s)^{-d/2} + τ_w² s d (1 - 2s)^{-d/2 - 1}` for s < ½, infinite from ½ on.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      product: products of two keys, any shape.

    Returns:
      K, the shape of `product`: the covariance per unit of both values.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    dimension, product = _identity("long_prompt_covariance", task), _exact("long_prompt_covariance", product)[0]
    finite = product < 0.5
    left = 1 - 2 * jnp.where(finite, product, 0.0)
    law = left ** (-dimension / 2) * (_power(task) + task.task_scale**2 * dimension * product / left)
    return jnp.where(finite, law, jnp.inf)


@public
def long_prompt_coefficient(
    task: LinearRegression,
    omega: Float[Array, " h"] | Float[np.ndarray, " h"],
    mu: Float[Array, " h"] | Float[np.ndarray, " h"],
) -> Float[Array, ""]:
    """Return the limit of `L (R_L - R_∞)` of fixed heads (ω, μ), `R_∞ = ½ (τ_w² d (1 - μ·ω)² + s²)`.

    `½ Σ_hk μ_h μ_k K(ω_h ω_k) + τ_w² d (1 - μ·ω) Σ_h μ_h ω_h (1 - 2ω_h²)^{-d/2 - 1}`: infinite if some $ω_h² ≥ ½$.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys, shape (H,).
      mu: values, shape (H,).

    Returns:
      The coefficient of 1/L in `heads_risk`, shape ().

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    dimension, (omega, mu) = _identity("long_prompt_coefficient", task), _exact("long_prompt_coefficient", omega, mu)
    variance = mu @ long_prompt_covariance(task, jnp.outer(omega, omega)) @ mu
    left = 1 - 2 * jnp.where(omega**2 < 0.5, omega**2, 0.0)
    bias = (1 - mu @ omega) * jnp.sum(mu * omega * left ** (-dimension / 2 - 1))
    finite = jnp.all(omega**2 < 0.5)
    return jnp.where(finite, 0.5 * jnp.where(finite, variance, 0.0) + task.task_scale**2 * dimension * bias, jnp.inf)


@public
def several_tasks_law(
    dimensions: Real[Array, " i"] | Real[np.ndarray, " i"] | tuple[int, ...],
    omega: Float[Array, "h i"] | Float[np.ndarray, "h i"],
    mu: Float[Array, "h i"] | Float[np.ndarray, "h i"],
    *,
    task_scale: Scalar = 1.0,
    noise_std: Scalar = 0.0,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return $(R_∞, c)$ of H heads on I regressions on disjoint covariates: the total risk is about $R_∞ + c/L$.

    Head h has scores `x_lᵀ A_h x_q`, `A_h = Σ_j ω_hj P_j` with $P_j$ the projector on task j's covariates, and answers
    task i with `μ_hi y_i`. `R_∞ = ½ Σ_i τ_w² d_i (1 - Σ_h μ_hi ω_hi)²`, and with Π over all tasks j
    `c = ½ Σ_ihk μ_hi μ_ki Π_j (1 - 2ω_hj ω_kj)^{-d_j/2} [d_i τ_w² + s² + τ_w² d_i ω_hi ω_ki/(1 - 2ω_hi ω_ki)]`.
    Exact in the limit for heads without bias, `Σ_h μ_hi ω_hi = 1`.

    Args:
      dimensions: the $d_i$, shape (I,).
      omega: keys ω, shape (H, I).
      mu: values μ, shape (H, I).
      task_scale: $τ_w$, shape ().
      noise_std: standard deviation s of the noise on prompt labels, shape ().

    Returns:
      $(R_∞, c)$, shapes (): half mean squares summed over tasks, without the noise of the queries' labels. c is
      infinite if some product ω_hj ω_kj ≥ ½.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    sizes, omega, mu, task_scale, noise_std = _exact(
        "several_tasks_law", jnp.asarray(dimensions, float), omega, mu, task_scale, noise_std
    )
    products = omega[:, None] * omega[None]
    finite = products < 0.5
    left = 1 - 2 * jnp.where(finite, products, 0.0)
    growth = jnp.exp(-jnp.sum(sizes / 2 * jnp.log(left), axis=-1))
    power = task_scale**2 * sizes
    terms = growth[..., None] * (power + noise_std**2 + power * products / left)
    variance = jnp.einsum("hi,ki,hki->", mu, mu, terms)
    bias = jnp.sum(power * (1 - jnp.sum(mu * omega, axis=0)) ** 2)
    return 0.5 * bias, jnp.where(jnp.all(finite), 0.5 * variance, jnp.inf)


def _identity(owner: str, task: LinearRegression) -> int:
    """The dimension of `task`, whose covariances must be the identity."""
    require_float64(f"lib.icl.{owner}", task.cov)
    for name in ("cov", "query_cov"):
        matrix = getattr(task, name)
        eye = np.eye(task.dimension)
        if is_concrete(matrix) and (matrix.shape != eye.shape or np.abs(np.asarray(matrix) - eye).max() > 1e-12):
            raise ValueError(
                f"`{owner}(task=...)` needs a task whose {name} is the identity, because only then do all heads see "
                f"the same scores. Got {np.asarray(matrix)}."
            )
    return task.dimension


def _isotropic(owner: str, task: LinearRegression, omega, log_length):
    dimension = _identity(owner, task)
    omega, log_length = _exact(f"lib.icl.{owner}", omega, log_length)
    if omega.ndim != 1 or not omega.size:
        raise ValueError(
            f"`{owner}(omega=...)` needs shape (H,) with H ≥ 1, one key per head. Got shape {omega.shape}."
        )
    return dimension, omega, log_length


def _power(task: LinearRegression) -> Float[Array, ""]:
    """The variance of a prompt's label."""
    return task.task_scale**2 * task.dimension + task.noise_std**2


def _noise_ratio(task: LinearRegression) -> Float[Array, ""]:
    return (task.noise_std / task.task_scale) ** 2


@partial(jax.jit, static_argnums=(0, 3))
def _lengths(dimension: int, steepest: Float[Array, ""], log_length: Float[Array, ""], nodes: int):
    """Nodes and weights for the length of a standard normal query, out to where `e^{steepest² r²}/L` stops to matter.

    A risk grows like that until a token freezes all others, and by then the normal has fallen by the prompt's length.
    """
    unit, width = np.polynomial.legendre.leggauss(nodes)
    squared, log_length = jax.lax.stop_gradient((steepest**2, log_length))
    slack = jnp.maximum(0.5 - squared, 1e-6)
    reach = jnp.sqrt(jnp.minimum(2 * (_RADIUS_DROP + log_length), _RADIUS_DROP / slack))
    radius = (dimension**0.5 + reach) * (unit + 1) / 2
    return radius, jax.nn.softmax(np.log(width) + (dimension - 1) * jnp.log(radius) - radius**2 / 2)


def _head_moments(task: LinearRegression, dimension: int, omega, log_length):
    """N of `heads_risk`, shape (H, H), and `ω_h E r²P(ω_h r)`, shape (H,)."""
    heads = omega.shape[0]
    radius, weight = _lengths(dimension, jnp.max(jnp.abs(omega)), log_length, _RADII)
    tilts = omega[:, None] * radius
    power = task.task_scale**2
    rest = power * (dimension - 1) + task.noise_std**2
    single = score_statistics(tilts**2, log_length)
    small = jnp.abs(tilts) <= LARGEST_TILT
    diagonal = jnp.where(small, power * single.score_error + rest * single.participation, jnp.nan) @ weight
    noise = jnp.diag(diagonal)
    if heads > 1:
        first, second = np.triu_indices(heads, 1)
        pairs = pair_statistics(tilts[first], tilts[second], log_length)
        mixed = (power * pairs.score_error + rest * pairs.participation) @ weight
        noise = noise.at[first, second].set(mixed).at[second, first].set(mixed)
    return noise, omega * (single.participation * radius**2 @ weight)


# --- the best opposite pair -------------------------------------------------------------------------------

_SHORT = math.log(35.0)  # up to this length the best key is searched among all, beyond it near 0
_MANY, _SMALL_KEY = 5, 0.2  # from this dimension on, up to this key, 20 nodes of the Gauss rule reach rounding
_FIT = 12  # keys that are compared first, and those of the polynomial that is minimised
_POINTS = np.cos(np.pi * (np.arange(_FIT) + 0.5) / _FIT)
_TO_POWERS = np.linalg.inv(np.vander(_POINTS))
# least squares for h where ω⁴ h is known at nodes ω² that are proportional to the points plus one
_NEAR_ZERO = ((_POINTS + 1) / 2) ** 2
_TO_REST = np.linalg.pinv(_NEAR_ZERO[:, None] * np.vander(_POINTS, 8)) * _NEAR_ZERO


@public
def opposite_values(
    task: LinearRegression, omega: Scalar, log_length: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the best value μ of two heads (ω, μ) and (-ω, -μ), and their risk.

    `best_values` for an opposite pair, faster and without its loss of digits at small keys. With β = 2μω and a = ω r
    the pair has `2R - s² = τ_w² [(1 - β)² d + 2(1 - β)β E r²P(a)] + β² n`,
    `n = ½ E r² [τ_w² (Q(a) - G̃(a, -a)) + (τ_w² (d - 1) + s²)(P(a) - C(a, -a))]/a²`, which is smooth in ω² down to 0.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: the key ω, shape (), of either sign, `1e-7 ≤ |ω|`; the largest is that of `heads_risk`.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      (μ of shape (), risk of shape ()): half the mean square, label noise included. The excess over the noise has a
      relative error below 1e-10 for |ω| ≤ 0.7 and d ≤ 10. NaN outside the domain. 60 ms for |ω| below 0.3, half
      of it for 5 or more dimensions and |ω| ≤ 0.2, if ω is not traced.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad (first derivatives).
    """
    dimension = _identity("opposite_values", task)
    omega, log_length = _exact("lib.icl.opposite_values", omega, log_length)
    inside = (log_length >= 0) & (log_length <= LARGEST_LOG_LENGTH)
    log_length = jnp.where(inside, log_length, 1.0)
    keys = jnp.abs(omega)[None]
    if dimension >= _MANY and is_concrete(omega) and keys[0] <= _SMALL_KEY:
        lengths = _few_lengths(dimension, keys, log_length)
    else:
        lengths = _lengths_by_key(dimension, keys, log_length, _RADII)
    gain, excess = (one[0] for one in _pair_excess(task, keys, log_length, lengths))
    alone = log_length == 0
    value = jnp.where(alone, 0.0, gain / (2 * omega))
    power = task.task_scale**2 * task.dimension
    risk = 0.5 * (task.noise_std**2 + jnp.where(alone, power, excess * jnp.exp(-log_length)))
    return jnp.where(inside, value, jnp.nan), jnp.where(inside, risk, jnp.nan)


@public
def best_pair(
    task: LinearRegression, log_length: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return the keys and values (ω, μ) of the heads (ω, μ) and (-ω, -μ) that minimise `heads_risk`, and the risk.

    The minimum over ω > 0 of the risk of `opposite_values`. The best ω is about `√(12/((d + 4)(d + 3 + ς) L))`,
    $ς = s²/τ_w²$.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330; NaN outside.

    Returns:
      (ω > 0 of shape (), μ of shape (), risk of shape ()): half the mean square, label noise included. ω has a
      relative error below 1e-5 and the risk one below 1e-10. At L = 1 all keys are equal, and μ = 0.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap; grad of the risk.
    """
    dimension, log_length = _identity("best_pair", task), _exact("best_pair", log_length)[0]
    known = (log_length >= 0) & (log_length <= LARGEST_LOG_LENGTH)
    searched = jax.tree.map(jax.lax.stop_gradient, (task, jnp.where(known, log_length, 1.0)))
    omega = jax.lax.stop_gradient(_best_key(searched[0], dimension, searched[1]))
    return jnp.where(known, omega, jnp.nan), *opposite_values(task, omega, log_length)


def _best_key(task: LinearRegression, dimension: int, log_length: Float[Array, ""]) -> Float[Array, ""]:
    """Compare keys on a geometric grid and fit around the best; for long prompts, fit the rest of an expansion at 0.

    `L (2R - s²) = e - c ω² + ω⁴ h(ω²)`, where e is that of `debiased_descent`, c is
    `4τ_w² d(d + 2)(L - 1)/(L + d + ς)²`, and h is smooth, so that ω keeps its digits where the gain, of order 1/L³, is
    below rounding.
    """
    power, ratio, inverse = task.task_scale**2, _noise_ratio(task), jnp.exp(-log_length)
    leading = 12 * inverse / ((dimension + 4) * (dimension + 3 + ratio))
    stretch = 1 / (1 + (dimension + ratio) * inverse)
    start = power * dimension * (dimension + 1 + ratio) * stretch
    slope = 4 * power * dimension * (dimension + 2) * (1 - inverse) * inverse * stretch**2
    widest = 0.3 / (dimension + 4)
    largest = 0.98 * LARGEST_TILT / jnp.max(_few_lengths(dimension, jnp.ones(1), log_length)[0])

    def excess(keys):
        return _pair_excess(task, keys, log_length, _few_lengths(dimension, keys, log_length))[1]

    short = log_length <= _SHORT
    scan = jnp.linspace(0.5 * jnp.log(leading) - 1.0, jnp.log(largest), _FIT)
    best = jnp.nanargmin(_when(short, excess, jnp.zeros_like, jnp.exp(scan)))
    low = jnp.where(short, scan[jnp.maximum(best - 1, 0)], 0.0)
    high = jnp.where(short, scan[jnp.minimum(best + 1, _FIT - 1)], widest)
    nodes = low + (high - low) * (_POINTS + 1) / 2
    values = excess(jnp.where(short, jnp.exp(nodes), jnp.sqrt(jnp.abs(nodes))))
    near_zero = _least_near_zero(values - start, slope, leading, widest)
    return jnp.where(short, jnp.exp(_least_between(low, high, values / start)), jnp.sqrt(near_zero))


@jax.jit
def _least_between(low, high, values) -> Float[Array, ""]:
    """Return the place in [low, high] at which the polynomial through the values at the nodes is least."""
    fit = _TO_POWERS @ values
    grid = np.linspace(-1, 1, 401)
    place = jnp.asarray(grid)[jnp.argmin(jnp.polyval(fit, jnp.asarray(grid)))]
    first = jnp.polyder(fit)
    second = jnp.polyder(first)
    for _ in range(6):
        move = jnp.polyval(first, place) / jnp.abs(jnp.polyval(second, place))
        place = jnp.clip(place - move, -1.0, 1.0)
    return low + (high - low) * (place + 1) / 2


@jax.jit
def _least_near_zero(values, slope, leading, widest) -> Float[Array, ""]:
    """Return the ω² at which `-slope ω² + ω⁴ h(ω²)` is least, given its values at the nodes in [0, widest]."""
    squares = widest * (_POINTS + 1) / 2
    rest = _TO_REST @ ((values + slope * squares) / squares**2)
    change = jnp.polyder(rest) * 2 / widest
    squared = leading
    for _ in range(12):
        x = 2 * squared / widest - 1
        squared = slope / (2 * jnp.polyval(rest, x) + squared * jnp.polyval(change, x))
    return squared


def _when(condition: Bool[Array, ""], true: Callable, false: Callable, argument: Array) -> Array:
    """`jax.lax.cond`, which would compile both branches also where the condition is known."""
    if is_concrete(condition):
        return (true if condition else false)(argument)
    return jax.lax.cond(condition, true, false, argument)


def _pair_excess(
    task: LinearRegression,
    keys: Float[Array, " k"],
    log_length: Float[Array, ""],
    lengths: tuple[Float[Array, "k r"], Float[Array, "k r"]],
):
    """The gain β of the best values and `L (2R - s²)`, at keys ω > 0; `lengths` of queries with their weights."""
    tilts = jnp.maximum(keys[:, None] * lengths[0], 1e-7)
    gaps = _tabulated(_gap_integrals, tilts, -tilts, log_length)
    participation = score_statistics(tilts**2, log_length).participation
    return _excess_of_moments(task, lengths, participation, gaps, log_length)


@partial(jax.jit, static_argnums=0)
def _few_lengths(dimension: int, keys: Float[Array, " k"], log_length: Float[Array, ""]):
    """Lengths of queries and their weights, by the Gauss rule of the squared length in many dimensions.

    It needs the fewest nodes where keys are small. In few dimensions the best key of a short prompt is so large that
    the average is not close to a polynomial.
    """
    if dimension < _MANY:
        return _lengths_by_key(dimension, keys, log_length, 24)
    return tuple(jnp.broadcast_to(jnp.asarray(x), (keys.size, 20)) for x in _few_radii(dimension, 20))


@partial(jax.jit, static_argnums=(0, 3))
def _lengths_by_key(dimension: int, keys: Float[Array, " k"], log_length: Float[Array, ""], nodes: int):
    return jax.vmap(lambda omega: _lengths(dimension, omega, log_length, nodes))(keys)


@jax.jit
def _excess_of_moments(task: LinearRegression, lengths, participation, gaps, log_length):
    (radius, weight), (participation_gap, error_gap) = lengths, gaps
    dimension, power, length = task.dimension, task.task_scale**2, jnp.exp(log_length)
    rest = power * (dimension - 1) + task.noise_std**2
    noise = 0.5 * length * jnp.sum((power * error_gap + rest * participation_gap) * radius**2 * weight, axis=1)
    shrinkage = length * jnp.sum(participation * radius**2 * weight, axis=1)
    curvature = power * (dimension - 2 * shrinkage / length) + noise / length
    gain = power * (dimension - shrinkage / length) / curvature
    return gain, power * (dimension * noise - power * shrinkage**2 / length) / curvature


# --- other kernels, and other matrices --------------------------------------------------------------------

_KERNEL_SIZE, _KERNEL_RADII = (170, 701), 24


class KernelPair(NamedTuple):
    """Statistics of two heads with weights `p_l(a) = f(a g_l)/Σ_m f(a g_m)`.

    Attributes:
      participation: $𝔼 Σ_l p_l(a) p_l(b)$, shape ().
      product: E ĝ(a) ĝ(b), shape ().
      means: E ĝ(a) and E ĝ(b), shape (2,).
      total: $𝔼 Σ_{lm} p_l(a) p_m(b)$, shape (), which is 1 where the quadrature is exact.
    """

    participation: Float[Array, ""]
    product: Float[Array, ""]
    means: Float[Array, "2"]
    total: Float[Array, ""]


@public
def kernel_pair(log_kernel: Callable, a: Scalar, b: Scalar, log_length: Scalar) -> KernelPair:
    """Return E Σ p(a) p(b), E ĝ(a) ĝ(b) and E ĝ of heads whose weights are a positive kernel f of their scores.

    Args:
      log_kernel: the function log f, elementwise in JAX; -inf at isolated zeros is allowed. `lambda x: x` is a softmax,
        `lambda x: 2 * jnp.log(jnp.abs(1 + x / 2))` its square Taylor polynomial.
      a: tilt of the first head, of either sign, shape (), |a| ≤ 6.
      b: tilt of the second head, of either sign, shape (), |b| ≤ 6.
      log_length: natural logarithm of the prompt length, shape (), ln 10 ≤ log_length ≤ 20.

    Returns:
      A `KernelPair`. `total - 1` is a necessary check of the quadrature: below 1e-9 for kernels without zeros. A kernel
      with a zero of order two has tails `e^{-sL/2}`, hence the lower bound on the length.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap; grad where f has no zero.
    """
    a, b, log_length = _exact("lib.icl.kernel_pair", a, b, log_length)
    others, length = jnp.expm1(log_length), jnp.exp(log_length)
    edge = jnp.sqrt(2 * log_length) + 9.0
    g, g_step = _trapezoid((-edge, edge), _KERNEL_SIZE[1])
    normal = g_step / math.sqrt(2 * math.pi) * jnp.exp(-(g**2) / 2)
    log_factors = jnp.stack([log_kernel(tilt * g) for tilt in (a, b)])

    def sizes(s, log_factor):
        return jnp.exp(jnp.minimum(s[:, None] + log_factor, 6.5))

    def alive(s):
        lost = jnp.sum(-jnp.expm1(-sizes(s, log_factors)) * normal, axis=1)
        return others * _log_phi(lost) > -40.0 - log_length

    bottom = -log_length - jax.nn.logsumexp(log_factors + jnp.log(normal), axis=1) - 33.0
    top = crossing(alive, bottom, jnp.full(2, 60.0), halvings=_HALVINGS)
    ends = jax.lax.stop_gradient((bottom, top))

    def factors(k):
        s, step = _trapezoid((ends[0][k], ends[1][k]), _KERNEL_SIZE[0])
        size = sizes(s, log_factors[k])
        return step, -jnp.expm1(-size), jnp.exp(-size), size * jnp.exp(-size)

    (s_step, lost, kept, one), (t_step, lost_b, kept_b, one_b) = factors(0), factors(1)
    log_phi = _log_phi((lost @ normal)[:, None] + (kept * normal) @ lost_b.T)
    single = s_step * t_step * length * jnp.exp(others * log_phi)
    double = s_step * t_step * length * others * jnp.exp((others - 1) * log_phi)

    def mean(left, right, weight):
        return (left * (weight * normal)) @ right.T

    unit = jnp.ones_like(g)
    participation = jnp.sum(single * mean(one, one_b, unit))
    total = participation + jnp.sum(double * mean(one, kept_b, unit) * mean(kept, one_b, unit))
    product = jnp.sum(single * mean(one, one_b, g**2) + double * mean(one, kept_b, g) * mean(kept, one_b, g))
    means = [
        step * jnp.sum(length * (each @ (g * normal)) * jnp.exp(others * _log_phi(gone @ normal)))
        for step, each, gone in ((s_step, one, lost), (t_step, one_b, lost_b))
    ]
    return KernelPair(participation, product, jnp.stack(means), total)


@public
@partial(jax.jit, static_argnums=1)
def kernel_best_values(
    task: LinearRegression, log_kernel: Callable, omega: Float[Array, " h"], log_length: Scalar
) -> tuple[Float[Array, " h"], Float[Array, ""]]:
    """Return the best values of heads with kernel f, scores `ω_h ⟨x_l, x_q⟩` and values `μ_h y_l`, and their risk.

    `2R = τ_w² d + s² - mᵀK⁻¹m` with `m_h = τ_w² E r ĝ(ω_h r)` and `K_hk = E [τ_w² ĝĝ + (τ_w² (d - 1) + s²) Σ p p]`, in
    this plain form: digits are lost in proportion to L, and where keys nearly coincide.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      log_kernel: the function log f, as in `kernel_pair`; hashable.
      omega: keys, shape (H,), all different.
      log_length: natural logarithm of the prompt length, shape (), as in `kernel_pair`.

    Returns:
      (μ of shape (H,), risk of shape ()): half the mean square, label noise included.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap.
    """
    dimension, omega, log_length = _isotropic("kernel_best_values", task, omega, log_length)
    heads = omega.shape[0]
    radius, weight = _lengths(dimension, jnp.zeros(()), jnp.zeros(()), _KERNEL_RADII)
    first, second = np.triu_indices(heads)
    places = [
        jnp.broadcast_to(x, (first.size, radius.size)).ravel()
        for x in (omega[first][:, None] * radius, omega[second][:, None] * radius)
    ]
    found = jax.lax.map(lambda pair: kernel_pair(log_kernel, pair[0], pair[1], log_length), tuple(places))
    shape = (first.size, radius.size)
    power = task.task_scale**2
    terms = power * found.product + (power * (dimension - 1) + task.noise_std**2) * found.participation
    entries = terms.reshape(shape) @ weight
    matrix = jnp.zeros((heads, heads)).at[first, second].set(entries).at[second, first].set(entries)
    means = found.means[:, 0].reshape(shape)[np.flatnonzero(first == second)]
    target = power * (means * radius) @ weight
    mu = jnp.linalg.solve(matrix, target)
    return mu, 0.5 * (_power(task) - target @ mu)


_OPPOSITE_SIZE, _OPPOSITE_RADII = (128, 161), 24


@public
def kernel_curvature(log_kernel: Callable) -> Float[Array, ""]:
    """Return the third derivative over the first, minus the second, of the kernel f/f(0) at 0, called κ.

    On an infinite prompt of normal scores `a g` a head has the mean score `f'(0)/f(0) a (1 + κ a²/2 + …)`: its response
    is linear to this order for κ = 0, as for the exponential, and saturates for κ < 0.

    Args:
      log_kernel: the function log f, in JAX, with f(0) > 0, f'(0) ≠ 0 and three derivatives at 0.

    Returns:
      κ, shape (): that of f(c x) is c² times that of f.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit.
    """
    zero = _exact("lib.icl.kernel_curvature", 0.0)[0]

    def kernel(x):
        return jnp.exp(log_kernel(x) - jax.lax.stop_gradient(log_kernel(zero)))

    first = jax.grad(kernel)
    second = jax.grad(first)
    return jax.grad(second)(zero) / first(zero) - second(zero)


@public
def opposite_kernel_values(
    task: LinearRegression, log_kernel: Callable, omega: Scalar, log_length: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the best value μ of two heads (ω, μ) and (-ω, -μ) with kernel f, and their risk.

    `kernel_best_values` for an opposite pair, faster and without its loss of digits at small keys:
    `2R = τ_w² d + s² - m²/K` with `m = 2τ_w² E r ĝ(ωr)` and
    `K = 2E [τ_w² (ĝ(a)² - ĝ(a)ĝ(-a)) + (τ_w² (d - 1) + s²) Σ (p(a)² - p(a) p(-a))]`, a = ω r. A token's factor is split
    into its even and its odd part in g, so that both differences are products of odd parts.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      log_kernel: the function log f, as in `kernel_pair`.
      omega: the key ω, shape (), of either sign, 0.005 ≤ |ω| ≤ 0.6.
      log_length: natural logarithm of the prompt length, shape (), ln 10 ≤ log_length ≤ 10.

    Returns:
      (μ of shape (), risk of shape ()): half the mean square, label noise included. The risk has an error below 1e-9
      for d ≤ 5 (1e-11 for |ω| ≤ 0.35); its excess over the noise loses digits in proportion to L. 30 ms.

    Raises:
      ValueError: if a covariance of `task` is not the identity, or if float64 is off.

    Source: derived here. Transformations: jit, vmap; grad where f has no zero.
    """
    dimension = _identity("opposite_kernel_values", task)
    omega, log_length = _exact("lib.icl.opposite_kernel_values", omega, log_length)
    radius, weight = (jnp.asarray(x) for x in _few_radii(dimension, _OPPOSITE_RADII))
    edge = jnp.sqrt(2 * log_length) + 9.0
    g, step = _trapezoid((jnp.zeros_like(edge), edge), _OPPOSITE_SIZE[1])
    scores = omega * radius[:, None] * g
    normal = math.sqrt(2 / math.pi) * step * jnp.exp(-(g**2) / 2) * jnp.ones_like(g).at[0].set(0.5)
    found = _opposite_statistics(log_kernel(scores), log_kernel(-scores), g, normal, log_length)
    power = task.task_scale**2
    rest = power * (dimension - 1) + task.noise_std**2
    target = 2 * power * (weight * radius) @ found.mean
    curvature = 2 * weight @ (power * found.product_gap + rest * found.participation_gap)
    return target / curvature, 0.5 * (_power(task) - target**2 / curvature)


class _OppositeStatistics(NamedTuple):
    """Of one tilt a: E ĝ(a), `E ĝ(a)² - E ĝ(a)ĝ(-a)`, and `E Σ p(a)² - E Σ p(a) p(-a)`."""

    mean: Float[Array, "..."]
    product_gap: Float[Array, "..."]
    participation_gap: Float[Array, "..."]


@jax.jit
def _opposite_statistics(log_right, log_left, g, normal, log_length) -> _OppositeStatistics:
    """One row of log f(ag) and of log f(-ag), at g ≥ 0, for each tilt; `normal` are the weights of the nodes g."""
    others, length = jnp.expm1(log_length), jnp.exp(log_length)

    def mean(left, right, weight):
        return (left * (weight * normal)) @ right.T

    def at(row):
        right, left = row

        def sizes(s):
            return tuple(jnp.exp(jnp.minimum(s[:, None] + side, 6.5)) for side in (right, left))

        def lost_of(large, small):
            return -0.5 * (jnp.expm1(-large) + jnp.expm1(-small))

        def alive(s):
            return others * _log_phi(lost_of(*sizes(s)) @ normal) > -40.0 - log_length

        both = jnp.concatenate([right, left]) + jnp.log(jnp.concatenate([normal, normal]) / 2)
        bottom = -log_length - jax.nn.logsumexp(both)[None] - 30.0
        top = crossing(alive, bottom, jnp.full(1, 60.0), halvings=_HALVINGS)
        s, step = _trapezoid(jax.lax.stop_gradient((bottom[0], top[0])), _OPPOSITE_SIZE[0])
        large, small = sizes(s)
        kept = jnp.exp(-large), jnp.exp(-small)
        one = large * kept[0], small * kept[1]
        (kept_even, kept_odd), (one_even, one_odd) = ((0.5 * (x + y), 0.5 * (x - y)) for x, y in (kept, one))
        lost, unit = lost_of(large, small), jnp.ones_like(g)
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
        return _OppositeStatistics(mean_score, area * (one_token(g**2) + pairs), area * one_token(unit))

    return jax.lax.map(at, (log_right, log_left))


_MATRIX_SIZE = (150, 281, 121)  # levels, common scores, remaining scores


@public
def query_risk(
    task: LinearRegression,
    matrices: Float[Array, "h d d"] | Float[np.ndarray, "h d d"],
    mu: Float[Array, " h"] | Float[np.ndarray, " h"],
    query: Float[Array, " d"] | Float[np.ndarray, " d"],
    log_length: Scalar,
) -> Float[Array, ""]:
    """Return `½ E [(ŷ - y)² | x_q]` of heads with scores `⟨A_h x_q, x_l⟩` and values `μ_h y_l`, at any cov of the task.

    Scores of two heads are correlated normals. Given their common part they are independent, so that each one-token
    moment is again one matrix product.

    Args:
      task: a `LinearRegression`; its cov Σ is any covariance, and its query_cov does not matter.
      matrices: the $A_h$, shape (H, d, d).
      mu: the values $μ_h$, shape (H,).
      query: $x_q$, shape (d,), with standard deviations of the scores `0 < |Σ^{1/2} A_h x_q| ≤ 3`.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 20.

    Returns:
      The risk at this query, shape (), label noise included; relative error below 1e-8 in the domain. 0.2 s per pair.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap over queries.
    """
    matrices, mu, query, log_length = _exact("lib.icl.query_risk", matrices, mu, query, log_length)
    power = task.task_scale**2
    tilts = matrices @ query
    drifts = tilts @ task.cov
    spreads = jnp.sqrt(jnp.sum(tilts * drifts, axis=1))
    first, second = np.triu_indices(len(tilts))

    def entry(pair):
        h, k = pair
        correlation = jnp.clip(tilts[h] @ drifts[k] / (spreads[h] * spreads[k]), -1, 1)
        scores = jnp.stack([spreads[h], jnp.where(correlation < 0, -spreads[k], spreads[k])]), jnp.abs(correlation)
        products = power * jnp.stack([drifts[h] @ drifts[h], drifts[k] @ drifts[k], drifts[h] @ drifts[k]])
        return _correlated(scores, products, power * jnp.trace(task.cov) + task.noise_std**2, log_length)

    entries = jax.lax.map(entry, (jnp.asarray(first), jnp.asarray(second)))
    matrix = jnp.zeros((len(tilts), len(tilts))).at[first, second].set(entries).at[second, first].set(entries)
    missing = mu @ drifts - query
    shrinkage = (mu * score_statistics(spreads**2, log_length).participation) @ drifts
    bias = power * (missing @ missing - 2 * missing @ shrinkage)
    return 0.5 * (task.noise_std**2 + bias + mu @ matrix @ mu)


def _correlated(scores, products, label, log_length):
    """`K̃_hk`, the mean product of two heads' errors per unit of values: tilts of either sign, correlation ≥ 0."""
    ((a, b), common), (alpha, beta, kappa) = scores, products
    others, length = jnp.expm1(log_length), jnp.exp(log_length)
    edge = jnp.sqrt(2 * log_length) + 9.0
    c, c_step = _trapezoid((-edge, edge), _MATRIX_SIZE[1])
    z, z_step = _trapezoid((-edge, edge), _MATRIX_SIZE[2])
    normal = c_step / math.sqrt(2 * math.pi) * jnp.exp(-(c**2) / 2)
    rest = z_step / math.sqrt(2 * math.pi) * jnp.exp(-(z**2) / 2)
    window = _window(a, b, log_length, _DEFAULT)

    def factors(tilt, ends):
        s, step = _trapezoid(ends, _MATRIX_SIZE[0])
        score = jnp.sqrt(common) * c[:, None] + jnp.sqrt(1 - common) * z

        def at(level):
            size = jnp.exp(jnp.minimum(level + tilt * score, 6.5))
            kept = jnp.exp(-size)
            return jnp.stack([-jnp.expm1(-size) @ rest, *((size**power * kept) @ rest for power in range(4))])

        return step, jnp.moveaxis(jax.lax.map(at, s), 1, 0)

    (s_step, (lost, *left)), (t_step, (lost_b, *right)) = factors(a, window.s), factors(b, window.t)

    def m(i, j):
        return (left[i] * normal) @ right[j].T

    log_phi = _log_phi((lost @ normal)[:, None] + (left[0] * normal) @ lost_b.T)
    one = m(1, 1)
    diagonal = kappa * (one - m(2, 1) - m(1, 2) + 2 * m(2, 2)) + label * one
    diagonal += -alpha * (2 * m(2, 1) - m(3, 1)) - beta * (2 * m(1, 2) - m(1, 3))
    pairs = alpha * m(2, 0) * one + kappa * (m(2, 0) * m(0, 2) + one**2) + beta * one * m(0, 2)
    total = length * jnp.exp(others * log_phi) * diagonal + length * others * jnp.exp((others - 1) * log_phi) * pairs
    return s_step * t_step * jnp.sum(total)
