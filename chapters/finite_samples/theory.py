"""What replica theory says of a trained head, in the words in which a simulation can be measured too."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from chapters.finite_samples.training import HEADS, NOISE_STD, task
from lib.single_location.activations import Activation
from lib.single_location.replica import Replica, replica

QUANTITIES = ("risk", "m_k", "q_k", "m_v", "q_v", "train_loss")


class Measured(NamedTuple):
    """A number, and its standard error: of the quasi-random average, or over runs."""

    value: float
    std_error: float


# By head and sample ratio, the `QUANTITIES` by name: of the replica fixed point, or of training runs at D → ∞.
Trained = Mapping[tuple[str, float], Mapping[str, Measured]]


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
    return {name: Measured(float(values[name]), float(errors[name])) for name in QUANTITIES}
