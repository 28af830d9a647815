"""What theory says at n = αD prompts: of trained heads, in words of which a simulation has its own, and of the best."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from chapters.finite_samples.training import HEADS, LENGTH, NOISE_STD, SMALLEST_RIDGE, SNR, chapter_task
from lib.single_location import (
    Activation,
    LocationTask,
    Replica,
    bayes_optimal_risk,
    bayes_risk,
    best_risk,
    linear,
    replica,
)

# A sample ratio that is as good as infinite.
MANY = 1e6
# Sample ratios far beyond the curves, where a head is near what it can reach; ridges stay those of the last one.
FAR = (100.0, 1000.0)
# What the key ridge of softmax is multiplied by, at a sample ratio where the best one is at its floor and at one where
# it is above.
LOWERED, AT_FLOOR, ABOVE_FLOOR = 0.5, 4.0, 0.5
QUANTITIES = ("risk", "m_k", "q_k", "m_v", "q_v", "train_loss")


class Measured(NamedTuple):
    """A number, and its standard error: of the quasi-random average, or over runs.

    `converged` is False for the last step of an iteration that found no fixed point.
    """

    value: float
    std_error: float
    converged: bool = True

    @property
    def known(self) -> float:
        """The value, NaN where there is no fixed point: no claim about it holds."""
        return self.value if self.converged else np.nan


# By head and sample ratio, the `QUANTITIES` by name: of the replica fixed point, or of training runs at D → ∞.
Trained = Mapping[tuple[str, float], Mapping[str, Measured]]


@dataclass(frozen=True)
class Bounds:
    """What curves are held against: the Bayes-optimal risk by ratio and at `MANY`, heads at n = ∞ and at `FAR`."""

    optimal: Mapping[float, float]
    end: float
    heads: Mapping[str, float]
    far: Trained


@dataclass(frozen=True)
class Floor:
    """How the best ridges of softmax stand to the smallest that was allowed.

    At how many of `ratios` sample ratios the best one of keys and of values is that smallest; and risks at the best
    ridges and with the key ridge `LOWERED`, at one ratio where it is the smallest and at one where it is above.
    """

    ratios: int
    keys: int
    values: int
    at_floor: tuple[Measured, Measured]
    above_floor: tuple[Measured, Measured]


def least_squares_key() -> float:
    """|k|²/D of the best linear head of all, `ν (1 - 1/L)²`: its weights 1 + χ are least squares on (1, χ*)."""
    return SNR * (1.0 - 1.0 / LENGTH) ** 2


def solve_below_floor(ridges: pd.DataFrame, *, points: int) -> Floor:
    """Where the best ridges are at their floor, and what the same equations say of a key ridge below it."""
    mine = ridges[ridges["head"] == "softmax"]
    keys, values = (int((mine[column] <= SMALLEST_RIDGE).sum()) for column in ("ridge_k", "ridge_v"))

    def both(alpha):
        ridge_k, ridge_v = ridge_at(ridges, "softmax", alpha)
        pairs = ((ridge_k, ridge_v), (LOWERED * ridge_k, ridge_v))
        first, second = (
            quantities_of(solve_fixed_point(HEADS["softmax"], alpha, pair, points=points))["risk"] for pair in pairs
        )
        return first, second

    return Floor(len(mine), keys, values, both(AT_FLOOR), both(ABOVE_FLOOR))


def solve_curves(alphas: Iterable[float], ridges: pd.DataFrame, *, points: int) -> Trained:
    """Replica predictions of both heads along sample ratios, at the best ridges there."""
    return {
        (name, alpha): quantities_of(solve_fixed_point(activation, alpha, ridge_at(ridges, name, alpha), points=points))
        for name, activation in HEADS.items()
        for alpha in alphas
    }


def ridge_at(ridges: pd.DataFrame, name: str, alpha: float) -> tuple[float, float]:
    """Best ridges between the tracked sample ratios, by straight lines in logarithms."""
    mine = ridges.loc[ridges["head"] == name]

    def between(column):
        return float(np.exp(np.interp(np.log(alpha), np.log(mine["alpha"]), np.log(mine[column]))).round(3))

    return between("ridge_k"), between("ridge_v")


def solve_fixed_point(
    activation: Activation, alpha: float, ridge: tuple[float, float], *, points: int, task: LocationTask | None = None
) -> Replica:
    """The replica fixed point of the chapter's task, or of `task`."""
    ridge_k, ridge_v = ridge
    task = chapter_task() if task is None else task
    return replica(
        task, activation, noise_std=NOISE_STD, alpha=alpha, ridge=(float(ridge_k), float(ridge_v)), points=points
    )


def quantities_of(fixed: Replica) -> dict[str, Measured]:
    """The quantities that a simulation can measure too, and their errors."""
    values = {"risk": fixed.risk, **vars(fixed.overlaps), "train_loss": fixed.train_loss}
    errors = {"risk": fixed.std_error, **vars(fixed.overlaps_std_error), "train_loss": fixed.train_loss_std_error}
    converged = bool(fixed.converged)
    return {name: Measured(float(values[name]), float(errors[name]), converged) for name in QUANTITIES}


def bayes_optimal(alphas: Iterable[float]) -> dict[float, float]:
    """By sample ratio: the risk of the Bayes-optimal estimator."""
    return {alpha: float(bayes_optimal_risk(chapter_task(), noise_std=NOISE_STD, alpha=alpha)) for alpha in alphas}


def solve_bounds(alphas: Iterable[float], ridges: pd.DataFrame, *, points: int) -> Bounds:
    """The Bayes-optimal curve and its end, the population risks of both heads, and their replicas on the way there."""
    heads = {"softmax": float(bayes_risk(chapter_task())), "linear": float(best_risk(chapter_task(), linear))}
    far = solve_curves(FAR, ridges, points=points)
    return Bounds(bayes_optimal(alphas), bayes_optimal([MANY])[MANY], heads, far)
