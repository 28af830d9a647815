"""The losses that the code of [He25] prints, next to exact mean square errors at the published parameters."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.opposite_heads.exact_risks import pair_risk, regression
from lib.icl import LinearRegression
from lib.icl.heads import heads_risk

DATA = Path(__file__).parent / "data"
# Published parameters: keys and values of the trained pair and of the trained single head, and the length of training.
PAIR, TRAINED_HEAD, TRAINED_LENGTH = (0.13, 3.45), (0.5177, 1.5523), 40
PUBLISHED_DIMENSION, PUBLISHED_NOISE = 5, 0.1
# Bounds of the claims, set before exact and printed losses were compared here: on the relative deviations, on the slope
# of the deviation in the logarithm of the length in standard errors, and on the mean offset of the published figure.
LARGEST_DEVIATION, SLOPE_ERRORS, OFFSET_ERROR = 0.01, 2.0, 0.003
# Lengths of the exact curves.
CURVE_LENGTHS = np.round(np.geomspace(10, 100, 25), 2)


@dataclass(frozen=True)
class PublishedLosses:
    """Printed losses with the exact and the approximate mean square error at the same parameters, and exact curves.

    `approximate` is the approximate loss that the published code uses for its theory; NaN for gradient descent.
    """

    printed: pd.DataFrame
    curves: pd.DataFrame
    noise_variance: float


def published_head(task: LinearRegression) -> tuple[Float[np.ndarray, " 1"], Float[np.ndarray, " 1"]]:
    """Return key and value of one head: key 1/√d, and the value that is best for long prompts, at L of the training.

    The published formula contains `L`, which is 40 in the code that prints the losses, at every length of the prompts.
    """
    d = task.dimension
    labels = float(task.task_scale) ** 2 * d + float(task.noise_std) ** 2
    return np.array([d**-0.5]), np.array([d**0.5 / (1 + labels * d / TRAINED_LENGTH * np.e)])


def descent_error(task: LinearRegression, step: float, length: float, *, debiased: bool) -> float:
    """Return the mean square error of one step of gradient descent, on centred data if `debiased`.

    The prediction is `(η/L) Σ_l y_l ⟨x_l, x_q⟩`; centring leaves the covariance of n = L - 1 tokens. By the moments of
    a Wishart matrix the error is `τ_w² d + s² - 2η τ_w² d n/L + η² d n (τ_w² (n + d + 1) + s²)/L²`, with n = L without
    centring.
    """
    d, power, noise = task.dimension, float(task.task_scale) ** 2, float(task.noise_std) ** 2
    n = length - 1 if debiased else length
    square = step**2 * d * n * (power * (n + d + 1) + noise) / length**2
    return power * d + noise - 2 * step * power * d * n / length + square


def approximate_error(
    task: LinearRegression, omega: Float[np.ndarray, " h"], mu: Float[np.ndarray, " h"], length: float
) -> float:
    """Return the approximate loss of the published code, for noiseless labels of variance 1.

    It is `1 + s² - 2μ·ω + μᵀ(ωωᵀ + (1 + s²) e^{dωωᵀ}/L)μ`.
    """
    power = float(task.task_scale) ** 2 * task.dimension
    labels, products = power + float(task.noise_std) ** 2, np.outer(omega, omega)
    matrix = power * products + labels * np.exp(task.dimension * products) / length
    return float(labels - 2 * power * mu @ omega + mu @ matrix @ mu)


def _errors(task: LinearRegression, predictor: str, heads: int, length: float) -> tuple[float, float]:
    """Return the exact and the approximate mean square error; trained models with several heads are one pair."""
    if heads == 0:
        step = 2 * PAIR[0] * PAIR[1]
        return descent_error(task, step, length, debiased=predictor == "debiased"), np.nan
    if heads > 1:
        opposite = np.array([1.0, -1.0])
        error = 2 * pair_risk(task, *PAIR, np.log(length))
        return error, approximate_error(task, PAIR[0] * opposite, PAIR[1] * opposite, length)
    omega, mu = published_head(task) if predictor == "head" else map(np.atleast_1d, TRAINED_HEAD)
    return 2 * float(heads_risk(task, omega, mu, np.log(length))), approximate_error(task, omega, mu, length)


def solve_published_losses() -> PublishedLosses:
    """Return the printed losses with exact ones at the same lengths, and exact curves of the pair and of one head."""
    task = regression(PUBLISHED_DIMENSION, PUBLISHED_NOISE)
    printed = pd.read_csv(DATA / "published_losses.csv")
    found: dict[tuple, tuple[float, float]] = {}
    for predictor, heads, length in zip(printed["predictor"], printed["heads"], printed["length"], strict=True):
        name = "pair" if heads > 1 else predictor
        if (name, length) not in found:
            found[name, length] = _errors(task, name, heads, length)
    names = np.where(printed["heads"] > 1, "pair", printed["predictor"])
    both = [found[name, length] for name, length in zip(names, printed["length"], strict=True)]
    printed[["exact", "approximate"]] = np.array(both)
    rows = [
        (name, heads, length, *_errors(task, name, heads, length))
        for name, heads in (("pair", 2), ("head", 1))
        for length in CURVE_LENGTHS
    ]
    curves = pd.DataFrame(rows, columns=["predictor", "heads", "length", "exact", "approximate"])
    return PublishedLosses(printed, curves, float(task.noise_std) ** 2)
