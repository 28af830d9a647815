"""Least risks of two softmax heads with any keys, at several prompt lengths from one quadrature.

The library computes the covariance of two heads at one length; its integrand depends on the length only through a power
of φ, so that one grid of one-token moments serves all lengths. The tests compare both.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import roots_genlaguerre, wrightomega

from chapters.laboratory.grids import Axis, Grid, Values
from chapters.laboratory.key_plane import LARGEST_KEY, LONGEST, SHORTEST, coordinates, keys_at
from chapters.laboratory.trials import Trial
from lib.icl import LinearRegression

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
# Steps in the logarithms s and t of the auxiliary variables, and in the score g; natural logarithms that the integrand
# falls before it is cut, and standard deviations of g beyond the largest of the scores.
LEVEL_STEP, SCORE_STEP, DROP, REACH = 0.32, 0.18, 30.0, 7.5
# Largest logarithm of uA that is distinguished: e^{-uA} is below 1e-106 there, and no product is so small that
# processors take long.
LARGEST_SIZE = 5.5


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
    pairs = [[_two_heads(a * r, b * r, log_lengths) for r in RADIUS] for a, b in zip(first, second, strict=True)]
    mixed, *of_heads = np.moveaxis(np.array(pairs), 2, 0)
    mixed = np.einsum("prl,r->pl", mixed, WEIGHT)
    (one, shrink_one), (two, shrink_two) = (
        _one_head(keys, *of_head) for keys, of_head in ((first, of_heads[:2]), (second, of_heads[2:]))
    )
    excess = _least(mean[:, None], gap[:, None], (one, two, mixed), (shrink_one, shrink_two))
    return np.where(size[:, None] > 0, np.log(excess / descent_excess(log_lengths)), 0.0)


def descent_excess(log_length: Values) -> Values:
    """Return twice the excess risk of debiased gradient descent."""
    risks = [float(task().debiased_descent(at)[1]) for at in np.ravel(log_length)]
    return 2 * np.reshape(risks, np.shape(log_length)) - NOISE


def solve_pair_risks(nodes: Sequence[int], settings: int, *, seed: int) -> Trial:
    """Return the least risks at the nodes, and at random keys, uniform in the square, and uniform ln L."""
    ends = {"log_length": (SHORTEST, LONGEST), "size": (0.0, 1.0), "product": (-1.0, NEARLY_EQUAL)}
    axes = [Axis.between(name, *ends[name], count) for name, count in zip(ends, nodes, strict=True)]
    log_lengths, sizes, products = (axis.nodes for axis in axes)
    columns = [log_ratios(sizes, product, log_lengths) for product in products]
    grid = Grid.of(axes, lambda *_: {"log_ratio": np.stack(columns, axis=-1).transpose(1, 0, 2)})
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(-LARGEST_KEY, LARGEST_KEY, (2, settings))
    log_length = rng.uniform(SHORTEST, LONGEST, settings)
    size, product = coordinates(first, second)
    exact = [log_ratios(one[:1], one[1], one[2:])[0, 0] for one in np.stack([size, product, log_length], axis=-1)]
    return Trial(grid, (log_length, size, product), {"log_ratio": np.asarray(exact)})


def _one_head(keys: Float[np.ndarray, " p"], participation: Values, score_error: Values) -> tuple[Values, Values]:
    """Return N_hh and `ω_h E r² P(ω_h r)`, with the axes (keys, lengths), from P and Q at each radius."""
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


def _two_heads(a: float, b: float, log_lengths: Float[np.ndarray, " l"]) -> Float[np.ndarray, "5 l"]:
    """Return the covariance of two heads with tilts a and b, and the statistics of each, at each length."""
    first, second = _factors(a), _factors(b)
    heads = _statistics(a, first, log_lengths), _statistics(b, second, log_lengths)
    return np.concatenate([_covariance(a, b, first, second, log_lengths)[None], *heads])


@cache
def _scores() -> tuple[Float[np.ndarray, " g"], Float[np.ndarray, " g"]]:
    """Return the nodes of the scores g, and their weights under the standard normal distribution."""
    edge = np.sqrt(2 * LONGEST) + REACH
    g, step = np.linspace(-edge, edge, int(np.ceil(2 * edge / SCORE_STEP)), retstep=True)
    return g, step / np.sqrt(2 * np.pi) * np.exp(-(g**2) / 2)


class _Factors(NamedTuple):
    """The steps in s, and `1 - e^{-uA}`, `e^{-uA}` and uA of one token, u = e^s (rows), A = e^{ag} (columns)."""

    steps: Float[np.ndarray, " s"]
    lost: Float[np.ndarray, "s g"]
    kept: Float[np.ndarray, "s g"]
    size: Float[np.ndarray, "s g"]


def _factors(tilt: float) -> _Factors:
    """Return the factors at `s = turn + width (z - e^{-z})`: left of the turn, where they change little, steps grow."""
    turn, width = -(LONGEST + tilt**2 / 2 + 2 * abs(tilt)), 1 + abs(tilt) / 2
    ends = (np.array([-(LONGEST + DROP) - tilt**2 / 2, 4 + 2 * abs(tilt)]) - turn) / width
    low, high = ends + wrightomega(-ends)
    z, step = np.linspace(low, high, int(np.ceil(width * (high - low) / LEVEL_STEP)) + 1, retstep=True)
    size = np.exp(np.minimum((turn + width * (z - np.exp(-z)))[:, None] + tilt * _scores()[0], LARGEST_SIZE))
    return _Factors(width * step * (1 + np.exp(-z)), -np.expm1(-size), np.exp(-size), size)


def _statistics(tilt: float, factors: _Factors, log_lengths: Float[np.ndarray, " l"]) -> Float[np.ndarray, "2 l"]:
    """Return P and Q of one head at each length.

    They are one-dimensional: `P = L ∫ M_2 φ^{L-1} ds` and
    `Q = L ∫ E[(g-a)² (uA)² e^{-uA}] φ^{L-1} ds + L(L-1) ∫ a² M_2² φ^{L-2} ds`, with M_2 = E[(uA)² e^{-uA}].
    """
    g, normal = _scores()
    steps, lost, kept, size = factors
    log_phi = np.log1p(-np.minimum(lost @ normal, 1 - 1e-16))
    square = size**2 * kept
    second, errors = square @ normal, square @ (normal * (g - tilt) ** 2)
    others = np.expm1(log_lengths)
    alone, rest = np.exp(np.outer(others, log_phi)), np.exp(np.outer(others - 1, log_phi))
    pairs = others * (rest @ (steps * tilt**2 * second**2))
    return (others + 1) * np.stack([alone @ (steps * second), alone @ (steps * errors) + pairs])


def _covariance(
    a: float, b: float, first: _Factors, second: _Factors, log_lengths: Float[np.ndarray, " l"]
) -> Float[np.ndarray, " l"]:
    """Return `τ_w² G̃ + (τ_w² (d - 1) + s²) C` of heads with tilts a and b at each length.

    C and G̃ are the integrals of `lib.pairs`, by the trapezoidal rule.
    """
    g, normal = _scores()
    one, one_b = first.size * first.kept * normal, second.size * second.kept
    kept = first.kept * normal
    lost = (first.lost @ normal)[:, None] + kept @ second.lost.T
    log_phi = np.log1p(-np.minimum(lost, 1 - 1e-16))
    one_one, errors = one @ one_b.T, (one * ((g - a) * (g - b))) @ one_b.T
    from_a = a * ((first.size * one) @ second.kept.T) + b * one_one
    from_b = b * (kept @ (second.size * one_b).T) + a * one_one
    area = first.steps[:, None] * second.steps
    alone = area * np.exp(log_phi) * (TASK_VARIANCE * errors + LABEL * one_one)
    pairs = area * TASK_VARIANCE * from_a * from_b
    others = np.expm1(log_lengths)
    survival = np.exp(np.outer(others - 1, log_phi))
    return (others + 1) * (survival @ alone.ravel() + others * (survival @ pairs.ravel()))
