"""Exact mean square errors of one head and of opposite pairs on isotropic in-context regression."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lib.icl import LinearRegression
from lib.icl.heads import best_pair

# Keys of the risk curves, times √L: the best key is at about 0.4 in five dimensions.
SMALLEST_SCALED_KEY, LARGEST_SCALED_KEY = 0.1, 0.8
# Two keys, times √L, from which the curvature at zero is extrapolated.
CURVATURE_KEYS = (0.06, 0.12)


@dataclass(frozen=True)
class PairRisks:
    """Excess of the best pair at each key over debiased gradient descent, at one prompt length."""

    length: int
    scaled_keys: Float[np.ndarray, " keys"]
    excess: Float[np.ndarray, " keys"]


@dataclass(frozen=True)
class Curvature:
    """Coefficient of ω² in the excess at zero keys, times L².

    From exact risks with its uncertainty, by the formula, and by the form for long prompts.
    """

    length: int
    measured: float
    uncertainty: float
    predicted: float
    long_prompts: float


@dataclass(frozen=True)
class LimitCurve:
    """Limit of L³ times the excess for long prompts, `-quadratic x² + quartic x⁴` at x = ω √L."""

    quadratic: float
    quartic: float

    def at(self, scaled_keys: Float[np.ndarray, " keys"]) -> Float[np.ndarray, " keys"]:
        """Return the limit at keys times √L."""
        return -self.quadratic * scaled_keys**2 + self.quartic * scaled_keys**4


@dataclass(frozen=True)
class BestKeys:
    """Best keys of a pair by prompt length, and the limit of √L times the key."""

    lengths: Float[np.ndarray, " lengths"]
    keys: Float[np.ndarray, " lengths"]
    limit: float
    noiseless_limit: float


def regression(dimension: int, noise_variance: float) -> LinearRegression:
    """Return isotropic regression whose noiseless labels have variance 1: τ_w² = 1/d."""
    return LinearRegression(jnp.eye(dimension), task_scale=dimension**-0.5, noise_std=noise_variance**0.5)


def _pair_excess(task: LinearRegression, keys: np.ndarray, length: int) -> np.ndarray:
    """Return the mean square error of the best pair minus that of debiased gradient descent, at each key."""
    log_length = jnp.log(float(length))
    pairs = np.array([float(best_pair(task, log_length, key)[2]) for key in keys])
    return 2 * (pairs - float(task.debiased_descent(log_length)[1]))


def pair_risk(task: LinearRegression, key: float, value: float, log_length: float) -> float:
    """Return the risk of the heads (key, value) and (-key, -value): half the mean square, label noise included.

    It is a parabola in the value: the risk of the output 0 at value 0, and least at the best value. `heads_risk`, which
    does not use this, takes four times as long.
    """
    _, best_value, least = (float(one) for one in best_pair(task, log_length, key))
    output_zero = float(task.task_scale**2 * task.dimension + task.noise_std**2) / 2
    return least + (output_zero - least) * (value / best_value - 1) ** 2


def solve_pair_risks(task: LinearRegression, lengths: Sequence[int], keys: int) -> list[PairRisks]:
    """Return the excess of the best pair over debiased gradient descent along its key, at each length."""
    scaled = np.linspace(SMALLEST_SCALED_KEY, LARGEST_SCALED_KEY, keys)
    return [PairRisks(length, scaled, _pair_excess(task, scaled / length**0.5, length)) for length in lengths]


def solve_curvature(task: LinearRegression, length: int) -> Curvature:
    """Return the coefficient of ω² in the excess at zero keys, extrapolated from two small keys."""
    small, large = (key / length**0.5 for key in CURVATURE_KEYS)
    at_small, at_large = _pair_excess(task, np.array([small, large]), length) / np.array([small, large]) ** 2
    measured = at_small + (at_small - at_large) / ((large / small) ** 2 - 1)
    ratio, scale = float(task.noise_std / task.task_scale) ** 2, length**2
    long_prompts = -solve_limit_curve(task).quadratic
    predicted = long_prompts * (length - 1) * length / (length + task.dimension + ratio) ** 2
    return Curvature(length, scale * measured, scale * abs(measured - at_small), predicted, long_prompts)


def solve_limit_curve(task: LinearRegression) -> LimitCurve:
    """Return the limit of L³ times the excess of the best pair, with coefficients 4τ_w²d(d+2) and c₃."""
    d, power, ratio = task.dimension, float(task.task_scale) ** 2, float(task.noise_std / task.task_scale) ** 2
    quadratic = 4 * power * d * (d + 2)
    return LimitCurve(quadratic, quadratic * (d + 4) * (d + 3 + ratio) / 24)


def solve_best_keys(task: LinearRegression, lengths: Sequence[int]) -> BestKeys:
    """Return the best key of a pair at each length, and the limit of √L times it, with and without label noise."""
    keys = np.array([float(best_pair(task, jnp.log(float(length)))[0]) for length in lengths])
    d, ratio = task.dimension, float(task.noise_std / task.task_scale) ** 2
    limit, noiseless = ((12 / ((d + 4) * (d + 3 + noise))) ** 0.5 for noise in (ratio, 0.0))
    return BestKeys(np.array(lengths, float), keys, limit, noiseless)
