"""Predictions at n = αD prompts: replica fixed points of trained heads, and the Bayes-optimal estimator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from chapters.finite_samples.training import HEADS, LENGTH, NOISE_STD, SMALLEST_RIDGE, SNR, chapter_task
from lib.single_location import (
    Activation,
    LocationTask,
    bayes_optimal_risk,
    bayes_risk,
    best_risk,
    linear,
    replica,
)

# A sample ratio at which risks are practically those of infinitely many prompts.
MANY = 1e6
# Sample ratios far beyond the curves, where a head is near its best risk; the ridges are those of the last tracked one.
FAR = (100.0, 1000.0)
# Factor of the key ridge of softmax, a sample ratio at which the best ridge is at its lower bound, and one at which it
# is above.
LOWERED, AT_FLOOR, ABOVE_FLOOR = 0.5, 4.0, 0.5
QUANTITIES = ("risk", "m_k", "q_k", "m_v", "q_v", "train_loss")


class Measured(NamedTuple):
    """A number, and its standard error: of the quasi-random average, or over runs.

    `converged` is False if the iteration found no fixed point and this is its last step.
    """

    value: float
    std_error: float
    converged: bool = True

    @property
    def known(self) -> float:
        """The value, or NaN without a fixed point, so that no claim about it holds."""
        return self.value if self.converged else np.nan


# The `QUANTITIES` by head, sample ratio and name: of the replica fixed point, or of training runs at D → ∞.
Trained = Mapping[tuple[str, float], Mapping[str, Measured]]


@dataclass(frozen=True)
class Bounds:
    """References of the curves: the Bayes-optimal risk by ratio and at `MANY`, and the heads at n = ∞ and at `FAR`."""

    optimal: Mapping[float, float]
    end: float
    heads: Mapping[str, float]
    far: Trained


@dataclass(frozen=True)
class Floor:
    """The best ridges of softmax and their lower bound.

    `keys` and `values` are the numbers of sample ratios, of `ratios`, at which the best ridge is the lower bound.
    `at_floor` and `above_floor` are risks at the best ridges and with `LOWERED` times the key ridge, at one sample
    ratio where the best key ridge is the bound and at one where it is above.
    """

    ratios: int
    keys: int
    values: int
    at_floor: tuple[Measured, Measured]
    above_floor: tuple[Measured, Measured]


def least_squares_key() -> float:
    """Return |k|²/D of the best linear head, `ν (1 - 1/L)²`; its weights 1 + χ are least squares on (1, χ*)."""
    return SNR * (1.0 - 1.0 / LENGTH) ** 2


def solve_below_floor(ridges: pd.DataFrame, *, points: int) -> Floor:
    """Return how often the best ridges are at their lower bound, and predicted risks at a key ridge below it."""
    softmax_ridges = ridges[ridges["head"] == "softmax"]
    keys, values = (int((softmax_ridges[column] <= SMALLEST_RIDGE).sum()) for column in ("ridge_k", "ridge_v"))

    def both(alpha):
        ridge_k, ridge_v = ridge_at(ridges, "softmax", alpha)
        pairs = ((ridge_k, ridge_v), (LOWERED * ridge_k, ridge_v))
        first, second = (
            quantities_of(solve_fixed_point(HEADS["softmax"], alpha, pair, points=points))["risk"] for pair in pairs
        )
        return first, second

    return Floor(len(softmax_ridges), keys, values, both(AT_FLOOR), both(ABOVE_FLOOR))


def solve_curves(alphas: Iterable[float], ridges: pd.DataFrame, *, points: int) -> Trained:
    """Return replica predictions of both heads along sample ratios, at their best ridges."""
    return {
        (name, alpha): quantities_of(solve_fixed_point(activation, alpha, ridge_at(ridges, name, alpha), points=points))
        for name, activation in HEADS.items()
        for alpha in alphas
    }


def ridge_at(ridges: pd.DataFrame, name: str, alpha: float) -> tuple[float, float]:
    """Return best ridges, interpolated linearly in logarithms between the tracked sample ratios."""
    tracked_ridges = ridges.loc[ridges["head"] == name]

    def between(column):
        return float(
            np.exp(np.interp(np.log(alpha), np.log(tracked_ridges["alpha"]), np.log(tracked_ridges[column]))).round(3)
        )

    return between("ridge_k"), between("ridge_v")


def solve_fixed_point(
    activation: Activation, alpha: float, ridge: tuple[float, float], *, points: int, task: LocationTask | None = None
) -> Any:
    """Return the replica fixed point of `task` (default: the chapter's task)."""
    ridge_k, ridge_v = ridge
    task = chapter_task() if task is None else task
    return replica(
        task, activation, noise_std=NOISE_STD, alpha=alpha, ridge=(float(ridge_k), float(ridge_v)), points=points
    )


def quantities_of(fixed: Any) -> dict[str, Measured]:
    """Return the quantities that a simulation can measure too, with their errors."""
    values = {"risk": fixed.risk, **vars(fixed.overlaps), "train_loss": fixed.train_loss}
    errors = {"risk": fixed.std_error, **vars(fixed.overlaps_std_error), "train_loss": fixed.train_loss_std_error}
    converged = bool(fixed.converged)
    return {name: Measured(float(values[name]), float(errors[name]), converged) for name in QUANTITIES}


def bayes_optimal(alphas: Iterable[float]) -> dict[float, float]:
    """Return the risk of the Bayes-optimal estimator by sample ratio."""
    return {alpha: float(bayes_optimal_risk(chapter_task(), noise_std=NOISE_STD, alpha=alpha)) for alpha in alphas}


def solve_bounds(alphas: Iterable[float], ridges: pd.DataFrame, *, points: int) -> Bounds:
    """Return the Bayes-optimal curve and its limit, the best risks of both heads, and their risks at `FAR`."""
    heads = {"softmax": float(bayes_risk(chapter_task())), "linear": float(best_risk(chapter_task(), linear))}
    far = solve_curves(FAR, ridges, points=points)
    return Bounds(bayes_optimal(alphas), bayes_optimal([MANY])[MANY], heads, far)
