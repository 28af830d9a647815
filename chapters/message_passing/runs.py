"""Runs of message passing: risks per iteration, the textbook step, and the limit D → ∞."""

from dataclasses import dataclass

import jax
import numpy as np
import pandas as pd

from chapters.message_passing.inference import InferenceTrajectory
from chapters.message_passing.settings import COMPARED, ITERATIONS, Setting, infer
from chapters.message_passing.theory import Measured
from lib.statistics import standard_error

# The setting of the runs in the notebook.
SHOWN = COMPARED[1]


@dataclass(frozen=True)
class Shown:
    """Runs by start on the same prompts, and uninformed runs with the step of the textbook.

    The runs of `by_start` have at least `ITERATIONS` iterations, so that nearly all are at rest after the last.
    """

    by_start: dict[str, InferenceTrajectory]
    textbook: dict[str, InferenceTrajectory]


def simulate_message_passing_runs(*, alpha: float, dimension: int, runs: int, iterations: int, seed: int) -> Shown:
    """Run message passing from both starts, with one seed per set of prompts."""
    how = {"alpha": alpha, "dimension": dimension, "seeds": range(runs * seed, runs * (seed + 1))}
    by_start = infer(SHOWN, **how, iterations=max(iterations, ITERATIONS), textbook=True)
    textbook = jax.tree.map(lambda leaf: leaf[:, :iterations], by_start.pop("textbook"))
    return Shown(by_start, {"uninformed": textbook})


def at_infinity(passed: pd.DataFrame) -> dict[tuple[Setting, float, str], Measured]:
    """Return each risk extrapolated to D → ∞ by a line in 1/D, by setting, sample ratio and start."""

    def limit_of(dimension, risk):
        """Return the end of the line through runs whose variance falls like 1/D, with its error from their scatter."""
        (_, limit), cov = np.polyfit(1 / dimension, risk, 1, w=np.sqrt(dimension), cov=True)
        return Measured(float(limit), float(np.sqrt(cov[1, 1])))

    return {
        (Setting(int(length), snr, noise), alpha, start): limit_of(
            mine["dimension"].to_numpy(float), mine["risk"].to_numpy()
        )
        for (length, snr, noise, alpha, start), mine in passed.groupby(
            ["length", "snr", "noise_std", "alpha", "start"], sort=False
        )
    }


def mean(values: pd.Series | np.ndarray) -> Measured:
    """Return the mean over runs and its standard error."""
    values = np.asarray(values)
    return Measured(float(values.mean()), float(standard_error(values)))
