"""What theory says at n = αD prompts: of trained heads, in words of which a simulation has its own, and of the best."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from chapters.finite_samples.training import HEADS, NOISE_STD, task
from lib.single_location.activations import Activation, linear
from lib.single_location.bayes_optimal import bayes_optimal_risk
from lib.single_location.population import bayes_risk, best_risk
from lib.single_location.replica import Replica, replica

# A sample ratio that is as good as infinite.
MANY = 1e6
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
    """Risks that cannot be beaten: the Bayes-optimal one by sample ratio, its end at `MANY`, and at n = ∞ by head."""

    optimal: Mapping[float, float]
    end: float
    heads: Mapping[str, float]


def follow(alphas: Iterable[float], ridges: pd.DataFrame, *, points: int) -> Trained:
    """Replica predictions of both heads along sample ratios, at the best ridges there."""
    return {
        (name, alpha): quantities_of(predict(activation, alpha, ridge_at(ridges, name, alpha), points=points))
        for name, activation in HEADS.items()
        for alpha in alphas
    }


def ridge_at(ridges: pd.DataFrame, name: str, alpha: float) -> tuple[float, float]:
    """Best ridges between the tracked sample ratios, by straight lines in logarithms."""
    mine = ridges.loc[ridges["head"] == name]

    def between(column):
        return float(np.exp(np.interp(np.log(alpha), np.log(mine["alpha"]), np.log(mine[column]))).round(3))

    return between("ridge_k"), between("ridge_v")


def predict(activation: Activation, alpha: float, ridge: tuple[float, float], *, points: int) -> Replica:
    """The replica fixed point of the chapter's task."""
    ridge_k, ridge_v = ridge
    return replica(
        task(), activation, noise_std=NOISE_STD, alpha=alpha, ridge=(float(ridge_k), float(ridge_v)), points=points
    )


def quantities_of(fixed: Replica) -> dict[str, Measured]:
    """The quantities that a simulation can measure too, and their errors."""
    values = {"risk": fixed.risk, **vars(fixed.overlaps), "train_loss": fixed.train_loss}
    errors = {"risk": fixed.std_error, **vars(fixed.overlaps_std_error), "train_loss": fixed.train_loss_std_error}
    converged = bool(fixed.converged)
    return {name: Measured(float(values[name]), float(errors[name]), converged) for name in QUANTITIES}


def bayes_optimal(alphas: Iterable[float]) -> dict[float, float]:
    """By sample ratio: the risk of the Bayes-optimal estimator."""
    return {alpha: float(bayes_optimal_risk(task(), noise_std=NOISE_STD, alpha=alpha)) for alpha in alphas}


def find_bounds(alphas: Iterable[float]) -> Bounds:
    """The Bayes-optimal curve and its end, and the population risks of both heads."""
    heads = {"softmax": float(bayes_risk(task())), "linear": float(best_risk(task(), linear))}
    return Bounds(bayes_optimal(alphas), bayes_optimal([MANY])[MANY], heads)
