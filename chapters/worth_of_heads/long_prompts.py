"""Heads on one task in the limit of long prompts, compared with linear attention.

With isotropic covariates, prior variance 1 and `Σ_h μ_h ω_h = 1`, L times the mean square error above the noise tends
to `Σ_n c_n ν_n²`, where `ν_n = Σ_h μ_h ω_h^n` and c_n are the coefficients of the power series of K(t), the covariance
of two heads with `ω_h ω_k = t` (`long_prompt_covariance`). All c_n are positive, and c_1 is the limit of linear
attention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.icl import LinearRegression
from lib.icl.blocks import best_in_the_valley, valley_limit

# Keys of each number of heads relative to the largest: the sum of the products of all but one of them vanishes.
RELATIVE_KEYS = {2: (1.0, -1.0), 3: (1.0, 0.5, -1 / 3), 4: (1.0, 0.5, -0.5, -1.0)}
# The largest keys of the curves, each 2^(1/4) times the one before.
LARGEST_KEYS = 0.05 * 2 ** (np.arange(13) / 4)
# Points of a curve whose largest keys differ by the factor √2.
STRIDE = 2
# Bounds on the value of a single head, whose key must be below √½.
SINGLE_VALUES = np.geomspace(1.6, 32.0, 61)
# Orders of the power series: keys are at most 0.45, and the series then ends far below rounding.
ORDERS = 160
# Largest keys of the random heads, and their numbers.
RANDOM_KEY, RANDOM_COUNTS = 0.4, (2, 3, 4)


@dataclass(frozen=True)
class Approach:
    """Sets of heads of one number along a scale of their keys: largest values, and the excess over linear attention.

    The excess is relative: the limit of the heads over that of linear attention, minus 1.
    """

    heads: int
    largest_values: Float[np.ndarray, " keys"]
    excess: Float[np.ndarray, " keys"]

    def slope(self, *, before: int = 0) -> float:
        """Return the logarithmic slope of the excess at the largest values, or `before` intervals earlier."""
        places = np.array([-1 - STRIDE, -1]) - before * STRIDE
        rise = np.diff(np.log(self.excess[places]))
        return float((rise / np.diff(np.log(self.largest_values[places])))[0])


@dataclass(frozen=True)
class RandomHeads:
    """Ratios to linear attention of random sets of heads with their best values, by number of heads.

    The ratios are those of the closed form of the covariance, in which values and covariances of both signs cancel;
    `independent` are the ratios that the same sets would have if the noises of different heads were independent.
    """

    heads: Float[np.ndarray, " sets"]
    ratios: Float[np.ndarray, " sets"]
    independent: Float[np.ndarray, " sets"]


def long_prompt_covariance(task: LinearRegression, product: float | Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """Return K(t), the limit of L times the covariance of two heads' outputs, averaged over queries; `t = ω_h ω_k`.

    `K(t) = (τ_w² d + s²)(1 - 2t)^{-d/2} + τ_w² t d (1 - 2t)^{-d/2 - 1}` for t < ½, per unit of both values; infinite
    from ½ on. Derived here.
    """
    dimension, power, noise = task.dimension, float(task.task_scale) ** 2, float(task.noise_std) ** 2
    left = 1 - 2 * np.where(np.less(product, 0.5), product, 0.0)
    covariance = left ** (-dimension / 2) * (power * dimension + noise + power * dimension * product / left)
    return np.where(np.less(product, 0.5), covariance, np.inf)


def covariance_series(dimension: int, noise_variance: float) -> Float[np.ndarray, " orders"]:
    """Return the coefficients c_n of `K(t) = (d + s²)(1 - 2t)^{-d/2} + t d (1 - 2t)^{-d/2-1}` in powers of t."""
    orders = np.arange(1, ORDERS)

    def binomial(power: float) -> np.ndarray:
        return np.concatenate([[1.0], np.cumprod(2 * (power + orders - 1) / orders)])

    plain, steeper = binomial(dimension / 2), binomial(dimension / 2 + 1)
    return (dimension + noise_variance) * plain + dimension * np.concatenate([[0.0], steeper[:-1]])


def best_excess(keys: Sequence[float], series: Float[np.ndarray, " orders"]) -> tuple[np.ndarray, float]:
    """Return the best values of heads with these keys, and their relative excess over linear attention.

    The excess is a sum of squares, `Σ_{n≠1} c_n ν_n² / c_1` at ν_1 = 1, so that it keeps its digits where it is small.
    """
    keys = np.asarray(keys, float)
    scale = np.max(np.abs(keys))
    relative = keys / scale
    powers = np.arange(series.size)
    # rows are √(c_n/c_1) ν_n for values m/scale, where n ≠ 1
    rows = np.sqrt(series / series[1])[:, None] * scale ** (powers[:, None] - 1.0) * relative ** powers[:, None]
    rows = np.delete(rows, 1, axis=0)
    start = relative / (relative @ relative)
    free = np.linalg.svd(relative[None])[2][1:].T
    shift = np.linalg.lstsq(rows @ free, -rows @ start, rcond=1e-14)[0]
    values = start + free @ shift
    return values / scale, float(np.sum((rows @ values) ** 2))


def solve_approaches(dimension: int, noise_variance: float) -> list[Approach]:
    """Return the excess of one head with a bounded value, and of two, three and four heads.

    The keys of two and more heads shrink in fixed proportions, and their values are the best at these keys.
    """
    series = covariance_series(dimension, noise_variance)
    approaches = [solve_single_head(dimension, noise_variance)]
    for heads, relative in RELATIVE_KEYS.items():
        solved = [best_excess(largest * np.array(relative), series) for largest in LARGEST_KEYS[::-1]]
        largest_values = np.array([np.max(np.abs(values)) for values, _ in solved])
        approaches.append(Approach(heads, largest_values, np.array([excess for _, excess in solved])))
    return approaches


def solve_single_head(dimension: int, noise_variance: float) -> Approach:
    """Return the excess of the best single head whose value does not exceed each of `SINGLE_VALUES`."""
    best = best_in_the_valley(dimension, noise_variance).squared_tilt
    squared_keys = np.maximum(best, 1 / SINGLE_VALUES**2)
    linear = dimension * (dimension + 1 + noise_variance)
    return Approach(1, SINGLE_VALUES, np.asarray(valley_limit(squared_keys, dimension, noise_variance)) / linear - 1)


def simulate_random_heads(dimension: int, noise_variance: float, count: int, *, key: PRNGKeyArray) -> RandomHeads:
    """Return the ratios to linear attention of random sets of heads, each with its best values."""
    series = covariance_series(dimension, noise_variance)
    drawn = RANDOM_KEY * np.asarray(jr.uniform(key, (count, max(RANDOM_COUNTS)), minval=-1.0, maxval=1.0))
    heads = [RANDOM_COUNTS[place % len(RANDOM_COUNTS)] for place in range(count)]
    keys = [row[:number] for row, number in zip(drawn, heads, strict=True)]
    task = LinearRegression(np.eye(dimension), noise_std=noise_variance**0.5)
    linear = dimension * (dimension + 1 + noise_variance)
    covariance = partial(long_prompt_covariance, task)
    best = [best_excess(each, series)[0] for each in keys]
    ratios = (
        np.array([mu @ covariance(np.outer(each, each)) @ mu for mu, each in zip(best, keys, strict=True)]) / linear
    )
    independent = np.array([1 / np.sum(each**2 / covariance(each**2)) for each in keys]) / linear
    return RandomHeads(np.array(heads, float), ratios, independent)
