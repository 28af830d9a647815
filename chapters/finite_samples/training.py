"""The chapter's task and heads, and training runs on n = αD prompts.

Training runs take minutes, so they are tracked in `data/`; `data/make.py` recomputes them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lib.single_location import (
    Activation,
    LocationTask,
    Spiked,
    linear,
    simulate_erm,
    softmax,
)

DATA = Path(__file__).resolve().parent / "data"
HEADS: Mapping[str, Activation] = {"softmax": softmax, "linear": linear}
# A start at the hidden directions, and the random one of `simulate_erm`.
STARTS: Mapping[str, Callable | None] = {"informed": lambda truth, key: truth, "uninformed": None}
# Length and signal strength of the chapter's task, and the noise on its labels.
LENGTH, SNR, NOISE_STD = 3, 4.0, 0.3
# Dimensions of the tracked runs, with the number of runs at each sample ratio.
RUNS = {200: 16, 400: 8, 800: 4}
# Lower bound of the best ridges, because the replica equations are not reliable below.
SMALLEST_RIDGE = 0.3
# A seed that no tracked run has.
OTHER_SEED = 999


@dataclass(frozen=True)
class Rerun:
    """The risk of one tracked training run, of the same run repeated, and of one on other prompts."""

    tracked: float
    again: float
    other: float


def chapter_task() -> Spiked:
    """Return the chapter's task: one of three tokens is relevant, with a score raised by two standard deviations."""
    return Spiked(LENGTH, SNR)


def read_tracked(name: str) -> pd.DataFrame:
    """Return a table of `data/`; its README describes the rows."""
    return pd.read_csv(DATA / f"{name}.csv")


def train(
    name: str,
    start: str,
    *,
    alpha: float,
    ridge: tuple[float, float],
    dimension: int,
    seeds: Sequence[int],
    task: LocationTask | None = None,
    **method: Any,
) -> Any:
    """Return the results of one training run per seed, stacked; its key is its seed folded with its dimension.

    `task` is the chapter's task by default, and `method` are arguments of `simulate_erm` for another than L-BFGS.
    """
    options = {"alpha": alpha, "ridge": ridge, "start": STARTS[start], **method}
    task = chapter_task() if task is None else task
    return simulate_erm(task, HEADS[name], dimension=dimension, seeds=seeds, noise_std=NOISE_STD, **options)


def train_first_run_again(runs: pd.DataFrame) -> Rerun:
    """Repeat one tracked training run, and train once more on other prompts."""
    row = runs[(runs["head"] == "softmax") & (runs["dimension"] == min(RUNS))].iloc[0]
    ridge = (float(row["ridge_k"]), float(row["ridge_v"]))
    setting = {"alpha": float(row["alpha"]), "ridge": ridge, "dimension": int(row["dimension"])}
    again, other = train("softmax", "informed", **setting, seeds=[int(row["seed"]), OTHER_SEED]).risk
    return Rerun(float(row["risk"]), float(again), float(other))
