"""Exact errors of opposite pairs with several kernels, their best keys, and their gain for long prompts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from chapters.which_kernel.kernels import KERNELS, regression
from chapters.which_kernel.opposite_pairs import kernel_curvature, opposite_kernel_values
from lib.icl import LinearRegression

SMALLEST_KEY, LARGEST_KEY = 0.04, 0.6
# The best key is searched between these multiples of the one that is predicted for long prompts.
SEARCHED = (0.3, 1.6)


@dataclass(frozen=True)
class BestPairs:
    """Best key and mean square error of a pair, by kernel, at one prompt length."""

    length: int
    keys: dict[str, float]
    errors: dict[str, float]
    linear: float
    debiased: float


@dataclass(frozen=True)
class KeyCurves:
    """Mean square errors at one prompt length, by kernel and key, and the best pairs.

    `slow_wins` tells whether pairs with slow kernels are known to beat linear attention here, see `slow_kernels_win`.
    """

    length: int
    keys: Float[np.ndarray, " keys"]
    errors: dict[str, Float[np.ndarray, " keys"]]
    best: BestPairs
    slow_wins: bool


@dataclass(frozen=True)
class NoisyComparison:
    """L² times the error of linear attention minus that of the best pair: exact, predicted, and without its noise.

    `next_order` is the order of the next term of linear attention's error, times L².
    """

    length: int
    noise_variance: float
    difference: float
    predicted: float
    predicted_at_default_noise: float
    next_order: float


def pair_error(task: LinearRegression, kernel: str, key: float, length: int) -> float:
    """Return the mean square error of the pair with keys plus and minus `key` and its best value."""
    return 2 * float(opposite_kernel_values(task, KERNELS[kernel], key, math.log(length))[1])


def linear_errors(task: LinearRegression, length: int) -> tuple[float, float]:
    """Return the mean square errors of the best linear attention and of debiased gradient descent."""
    debiased = task.debiased_descent(math.log(length))[1]
    return 2 * float(task.linear_attention_risk(length)), 2 * float(debiased)


@cache
def curvature(kernel: str) -> float:
    """Return κ of a kernel, see `kernel_curvature`."""
    return float(kernel_curvature(KERNELS[kernel]))


def predicted_key(task: LinearRegression, kernel: str, length: int) -> float:
    """Return the best key of long prompts: √(2/(|κ|L)) for κ < 0, and that of a softmax for κ = 0."""
    if kernel == "exp":
        ratio = float(task.noise_std / task.task_scale) ** 2
        return (12 / ((task.dimension + 4) * (task.dimension + 3 + ratio) * length)) ** 0.5
    return (-2 / (curvature(kernel) * length)) ** 0.5


def solve_gain_limit(task: LinearRegression) -> float:
    """Return the limit of L² times the gain over debiased gradient descent, for every kernel of negative curvature."""
    return 2 * float(task.task_scale) ** 2 * task.dimension * (task.dimension + 2)


def best_key(task: LinearRegression, kernel: str, length: int) -> tuple[float, float]:
    """Return the best key of a pair and its mean square error, for a kernel whose curvature is not positive."""
    start = predicted_key(task, kernel, length)
    found = minimize_scalar(
        lambda key: length**2 * pair_error(task, kernel, key, length),
        bounds=[factor * start for factor in SEARCHED],
        method="bounded",
        options={"xatol": 3e-3 * start},
    )
    return float(found.x), float(found.fun) / length**2


def solve_key_curves(task: LinearRegression, length: int, keys: int) -> KeyCurves:
    """Return the error of the best pair of each kernel along its key."""
    grid = np.linspace(SMALLEST_KEY, LARGEST_KEY, keys)
    errors = {kernel: np.array([pair_error(task, kernel, key, length) for key in grid]) for kernel in KERNELS}
    return KeyCurves(length, grid, errors, solve_best_pairs(task, length), slow_kernels_win(task, length))


def slow_kernels_win(task: LinearRegression, length: int) -> bool:
    """Return whether `L (d+3-ς) ≥ 0.55 (d+4)(d+2+ς)²`, where slow kernels are known to beat linear attention.

    L² times the difference of errors is τ_w² d (d+3-ς) for long prompts, ς = s²/τ_w². The next term, of order 1/L, is
    negative. Exact errors for d from 2 to 8, L from 20 to 400 and ς from 0 to d change sign where it is
    (d+4)(d+2+ς)²/(2L), up to ten per cent (`test_slow_kernels_win_where_it_is_known`).
    """
    d, ratio = task.dimension, float(task.noise_std / task.task_scale) ** 2
    return length * (d + 3 - ratio) >= 0.55 * (d + 4) * (d + 2 + ratio) ** 2


def solve_best_pairs(task: LinearRegression, length: int) -> BestPairs:
    """Return the best pairs of all kernels; 1 + exp has no best key, and its error is the limit of zero keys."""
    linear, debiased = linear_errors(task, length)
    found = {kernel: (0.0, debiased) if kernel == "1 + exp" else best_key(task, kernel, length) for kernel in KERNELS}
    keys, errors = ({kernel: pair[part] for kernel, pair in found.items()} for part in (0, 1))
    return BestPairs(length, keys, errors, linear, debiased)


def solve_gains(task: LinearRegression, lengths: Sequence[int]) -> list[BestPairs]:
    """Return the best pairs at each length."""
    return [solve_best_pairs(task, length) for length in lengths]


def solve_noisy_comparison(dimension: int, noise_variance: float, default_noise: float, length: int) -> NoisyComparison:
    """Return how far the best pair of sigmoid heads is from linear attention where labels are very noisy."""
    task = regression(dimension, noise_variance)
    difference = length**2 * (linear_errors(task, length)[0] - best_key(task, "sigmoid", length)[1])
    power = 1 / dimension
    predicted, at_default = (
        power * dimension * (dimension + 3 - noise / power) for noise in (noise_variance, default_noise)
    )
    next_order = power * dimension * (dimension + 1 + noise_variance / power) ** 2 / length
    return NoisyComparison(length, noise_variance, difference, predicted, at_default, next_order)
