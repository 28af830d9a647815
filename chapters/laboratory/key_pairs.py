"""Least risks of two softmax heads with any keys, at several prompt lengths from one quadrature.

The library computes the covariance of two heads at one length; its integrand depends on the length only through a power
of φ, so that one grid of one-token moments serves all lengths. The tests compare both.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import roots_genlaguerre

from chapters.laboratory.grids import Axis, Grid, Values
from chapters.laboratory.key_plane import LARGEST_KEY, LONGEST, SHORTEST, coordinates, keys_at
from chapters.laboratory.trials import Trial
from lib.icl import LinearRegression

# Nodes of the table. Every axis has an odd number of nodes, so that every second node gives a table of half as many.
LENGTHS, SIZES, PRODUCTS = 11, 17, 21
# The last node in `product`; equal keys, at 1, are read from the same polynomial.
NEARLY_EQUAL = 1 - 1e-3

DIMENSION, TASK_VARIANCE, NOISE = 5, 0.2, 0.1
LABEL = TASK_VARIANCE * (DIMENSION - 1) + NOISE  # the variance of a label, without its component along the query


def few_radii(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the Gauss rule for the length of a standard normal vector of R^d: n radii, and weights of sum 1."""
    half_square, weights = roots_genlaguerre(n, d / 2 - 1)
    return np.sqrt(2 * half_square), weights / weights.sum()


# Nodes and weights in the length of the query; 32 nodes change no risk by more than 2e-6 of itself. The outer nodes are
# left out, because moments are below 10 there and the least excess risk is above 1e-4.
RADIUS, WEIGHT = (rule[few_radii(DIMENSION, 16)[1] > 1e-12] for rule in few_radii(DIMENSION, 16))
# No key is larger than this at sizes up to 1.
STEEPEST = 0.69
# Steps in the logarithms s and t of the auxiliary variables, and in the score g; natural logarithms that the integrand
# falls before it is cut, and standard deviations of g beyond the largest of the scores.
LEVEL_STEP, SCORE_STEP, DROP, REACH = 0.45, 0.18, 30.0, 7.5


def task() -> LinearRegression:
    """Return the regression of this figure."""
    return LinearRegression(np.eye(DIMENSION), task_scale=TASK_VARIANCE**0.5, noise_std=NOISE**0.5)


def log_ratios(size: Values, product: float, log_lengths: Values) -> Float[np.ndarray, "sizes lengths"]:
    """Return the logarithms of the least excess risks in units of debiased gradient descent.

    Keys of size 0 have debiased gradient descent as their limit. Equal keys have a limit, too, but not in this form:
    the risk is NaN at `product = 1`.
    """
    size, log_lengths = np.asarray(size, float), np.asarray(log_lengths, float)
    mean, gap = keys_at(np.where(size > 0, size, 1.0), product)
    first, second = mean + gap, mean - gap
    tilts = first[:, None] * RADIUS
    covariances = np.asarray(_covariances(tilts.ravel(), second[0] / first[0], log_lengths))
    mixed = np.einsum("prl,r->pl", covariances.reshape(*tilts.shape, -1), WEIGHT)
    (one, shrink_one), (two, shrink_two) = (_one_head(keys, log_lengths) for keys in (first, second))
    excess = _least(mean[:, None], gap[:, None], (one, two, mixed), (shrink_one, shrink_two))
    return np.where(size[:, None] > 0, np.log(excess / descent_excess(log_lengths)), 0.0)


def descent_excess(log_length: Values) -> Values:
    """Return twice the excess risk of debiased gradient descent."""
    one = jax.vmap(lambda at: task().debiased_descent(at)[1])
    return 2 * np.asarray(one(np.ravel(log_length))).reshape(np.shape(log_length)) - NOISE


def solve_pair_risks(settings: int, *, seed: int) -> Trial:
    """Return the least risks at the nodes, and at random keys, uniform in the square, and uniform ln L."""
    axes = (
        Axis.between("log_length", SHORTEST, LONGEST, LENGTHS),
        Axis.between("size", 0.0, 1.0, SIZES),
        Axis.between("product", -1.0, NEARLY_EQUAL, PRODUCTS),
    )
    log_lengths, sizes, products = (axis.nodes for axis in axes)
    columns = [log_ratios(sizes, product, log_lengths) for product in products]
    grid = Grid.of(axes, lambda *_: {"log_ratio": np.stack(columns, axis=-1).transpose(1, 0, 2)})
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(-LARGEST_KEY, LARGEST_KEY, (2, settings))
    log_length = rng.uniform(SHORTEST, LONGEST, settings)
    size, product = coordinates(first, second)
    exact = [log_ratios(one[:1], one[1], one[2:])[0, 0] for one in np.stack([size, product, log_length], axis=-1)]
    return Trial(grid, (log_length, size, product), {"log_ratio": np.asarray(exact)})


def _one_head(keys: Float[np.ndarray, " p"], log_lengths) -> tuple[Values, Values]:
    """Return N_hh and `ω_h E r² P(ω_h r)`, with the axes (keys, lengths)."""
    participation, score_error = (np.asarray(part) for part in _statistics(keys[:, None] * RADIUS, log_lengths))
    noise = np.einsum("prl,r->pl", TASK_VARIANCE * score_error + LABEL * participation, WEIGHT)
    return noise, keys[:, None] * np.einsum("prl,r->pl", participation, WEIGHT * RADIUS**2)


def _least(mean: Values, gap: Values, noise: tuple[Values, Values, Values], shrinkage: tuple[Values, Values]) -> Values:
    """Return twice the least excess risk, in the basis of the half sum and the divided difference of the two heads.

    With M of the moments of these two outputs and of the missing slope δ, and v = (ω̄, 1, 1), the least
    `2R - s²` under the condition that slopes and δ add up to 1 is 1/(vᵀ M⁻¹ v).
    """
    (one, two, mixed), (shrink_one, shrink_two) = noise, shrinkage
    cross, both = (one - two) / (4 * gap), TASK_VARIANCE * (shrink_one + shrink_two) / 2
    apart = TASK_VARIANCE * (shrink_one - shrink_two) / (2 * gap)
    rows = (
        ((one + two + 2 * mixed) / 4, cross, both),
        (cross, (one + two - 2 * mixed) / (4 * gap**2), apart),
        (both, apart, np.full_like(one, TASK_VARIANCE * DIMENSION)),
    )
    moments = np.moveaxis(np.asarray(rows), (0, 1), (-2, -1))
    slopes = np.stack([np.broadcast_to(mean, one.shape), np.ones_like(one), np.ones_like(one)], axis=-1)
    return 1 / np.sum(slopes * np.linalg.solve(moments, slopes[..., None])[..., 0], axis=-1)


def _scores() -> tuple[Float[Array, " g"], Float[Array, " g"]]:
    """Return the nodes of the scores g, and their weights under the standard normal distribution."""
    edge = np.sqrt(2 * LONGEST) + REACH
    g = jnp.linspace(-edge, edge, int(np.ceil(2 * edge / SCORE_STEP)))
    return g, (g[1] - g[0]) / np.sqrt(2 * np.pi) * jnp.exp(-(g**2) / 2)


class _Factors(NamedTuple):
    """The step in s, and `1 - e^{-uA}`, `e^{-uA}` and uA of one token, u = e^s (rows), A = e^{ag} (columns)."""

    step: Float[Array, ""]
    lost: Float[Array, "s g"]
    kept: Float[Array, "s g"]
    size: Float[Array, "s g"]


def _factors(tilt: Float[Array, ""], g: Float[Array, " g"]) -> _Factors:
    largest = STEEPEST * RADIUS[-1]
    levels = int(np.ceil((LONGEST + DROP + largest**2 / 2 + 4 + 2 * largest) / LEVEL_STEP))
    low, high = -(LONGEST + DROP) - tilt**2 / 2, 4 + 2 * jnp.abs(tilt)
    size = jnp.exp(jnp.minimum(jnp.linspace(low, high, levels)[:, None] + tilt * g, 6.5))
    return _Factors((high - low) / (levels - 1), -jnp.expm1(-size), jnp.exp(-size), size)


@jax.jit
def _statistics(tilts: Float[Array, "*n"], log_lengths: Float[Array, " l"]):
    """Return P and Q of one head, with the lengths on a last axis.

    They are one-dimensional: `P = L ∫ M_2 φ^{L-1} ds` and
    `Q = L ∫ E[(g-a)² (uA)² e^{-uA}] φ^{L-1} ds + L(L-1) ∫ a² M_2² φ^{L-2} ds`, with M_2 = E[(uA)² e^{-uA}].
    """
    g, normal = _scores()

    def at(a):
        step, lost, kept, size = _factors(a, g)
        log_phi = jnp.log1p(-jnp.minimum(lost @ normal, 1 - 1e-16))
        square = size**2 * kept
        second, errors = square @ normal, square @ (normal * (g - a) ** 2)
        others = jnp.expm1(log_lengths)[:, None]
        alone, rest = jnp.exp(others * log_phi), jnp.exp((others - 1) * log_phi)
        participation = jnp.sum(alone * second, axis=1)
        error = jnp.sum(alone * errors + others * a**2 * second**2 * rest, axis=1)
        return step * jnp.exp(log_lengths) * participation, step * jnp.exp(log_lengths) * error

    values = jax.lax.map(at, tilts.ravel())
    return tuple(value.reshape(*tilts.shape, -1) for value in values)


@jax.jit
def _covariances(tilts: Float[Array, " n"], ratio: Float[Array, ""], log_lengths: Float[Array, " l"]):
    """Return `τ_w² G̃ + (τ_w² (d - 1) + s²) C` of heads with tilts (a, ratio a), one row per tilt.

    C and G̃ are the integrals of `lib.pairs`, by the trapezoidal rule.
    """
    g, normal = _scores()

    def at(a):
        b = ratio * a
        first, second = _factors(a, g), _factors(b, g)
        one, one_b = first.size * first.kept, second.size * second.kept

        def mean(left, right):
            return (left * normal) @ right.T

        lost = (first.lost @ normal)[:, None] + mean(first.kept, second.lost)
        log_phi = jnp.log1p(-jnp.minimum(lost, 1 - 1e-16))
        one_one, errors = mean(one, one_b), mean(one * ((g - a) * (g - b)), one_b)
        from_a = a * mean(first.size * one, second.kept) + b * one_one
        from_b = b * mean(first.kept, second.size * one_b) + a * one_one
        alone = jnp.exp(log_phi) * (TASK_VARIANCE * errors + LABEL * one_one)
        pairs = TASK_VARIANCE * from_a * from_b

        def at_length(log_length):
            others = jnp.expm1(log_length)
            return (others + 1) * jnp.sum(jnp.exp((others - 1) * log_phi) * (alone + others * pairs))

        return first.step * second.step * jax.lax.map(at_length, log_lengths)

    return jax.lax.map(at, tilts)
