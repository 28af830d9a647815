"""Models trained as published: tracked runs of the published length, and shorter runs made here."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from chapters.published_experiment.protocol import LAWS, POOLS, WIDTH, SeparateWeights, published_head, published_task
from companion.authoring.tasks import Arrays, Tasks, gather
from lib.flow import sgd
from lib.icl import LinearRegression, prompt_loss

# Tracked results with their origin, made by make.py in this folder, and the number of steps per row.
DATA = Path(__file__).parent / "data"
OTHER_STARTS = "other_starts"
STEPS_A_ROW = 1000
# Rows of a short run.
ROWS = 20


@dataclass(frozen=True)
class LongRun:
    """A tracked run for the corrected covariances: the exact mean square of the head after each of these steps."""

    steps: Int[np.ndarray, " rows"]
    risks: Float[np.ndarray, " rows"]


# Tracked runs by (activation, length, start).
LongRuns = Mapping[tuple[str, int, int], LongRun]


def read_long_runs(pattern: str = "*.csv") -> LongRuns:
    """Return the tracked runs of the published length that match `pattern`, all for the corrected covariances."""
    long = {}
    for path in sorted(DATA.glob(pattern)):
        activation, length, start = path.stem.split("_")
        read = pd.read_csv(path)
        long[activation, int(length), int(start)] = LongRun(read["step"].to_numpy(), read["risk"].to_numpy())
    if not long:
        raise FileNotFoundError(f"`{DATA}` holds no training run: make them with make.py there.")
    return long


def read_runs_from_other_starts() -> LongRuns:
    """Return the tracked runs on short prompts from other starts."""
    return read_long_runs(f"{OTHER_STARTS}/*.csv")


def lengths_of(long: LongRuns) -> list[int]:
    """Return the prompt lengths of tracked runs."""
    return sorted({length for _, length, _ in long})


@dataclass(frozen=True)
class Schedule:
    """How a model is trained: number of steps, their size, prompts per step."""

    steps: int
    step_size: float
    batch: int


@dataclass(frozen=True)
class Plan:
    """The models to train: both activations at each length, from several starts."""

    law: str
    lengths: list[int]
    starts: int
    schedule: Schedule

    @property
    def heads(self) -> list[tuple[str, int]]:
        """Return activation and prompt length of each model."""
        return [(activation, length) for length in sorted(set(self.lengths)) for activation in POOLS]


@dataclass(frozen=True)
class Training:
    """Mean squares of one head on the fresh prompts of each twentieth of the training, one row per start.

    `times` are the middles of the twentieths, in steps times step size.
    """

    times: Float[np.ndarray, " rows"]
    loss: Float[np.ndarray, "starts rows"]
    loss_std_error: Float[np.ndarray, "starts rows"]


# Trainings by (activation, length).
Trainings = Mapping[tuple[str, int], Training]


def train_short_runs(plan: Plan, *, key: PRNGKeyArray) -> Trainings:
    """Train every model of the plan."""
    times = (np.arange(ROWS) + 0.5) / ROWS * plan.schedule.steps * plan.schedule.step_size
    values = gather(training_tasks(plan, key=key))
    return {head: Training(times, **arrays) for head, arrays in zip(plan.heads, values, strict=True)}


def training_tasks(plan: Plan, *, key: PRNGKeyArray) -> Tasks:
    """Return one training per activation and length, from all starts at once."""
    return {
        f"{activation}-{length}": partial(_train, plan, activation, length, key) for activation, length in plan.heads
    }


def _train(plan: Plan, activation: str, length: int, key: PRNGKeyArray) -> Arrays:
    """Return mean squares on the fresh prompts of each twentieth of the training, and their standard errors."""
    trajectory = histories(plan, activation, length, key=key)
    return {"loss": np.asarray(trajectory.loss, float), "loss_std_error": np.asarray(trajectory.loss_std_error, float)}


def histories(plan: Plan, activation: str, length: int, *, key: PRNGKeyArray) -> Any:
    """Train one head at one length from all starts; row i of the result is run i."""
    return _histories(published_task(LAWS[plan.law]), plan.schedule, activation, length, jr.split(key, plan.starts))


@partial(jax.jit, static_argnums=(1, 2, 3))
def _histories(task: LinearRegression, schedule: Schedule, activation: str, length: int, keys: Key[Array, " starts"]):
    loss = prompt_loss(
        task,
        length,
        batch=schedule.batch,
        head=published_head,
        pool=POOLS[activation],
        weight=1.0,
    )

    def run(key):
        weights_key, prompts_key = jr.split(key)
        return sgd(
            loss,
            SeparateWeights.draw(WIDTH, key=weights_key),
            optimiser=optax.sgd(schedule.step_size),
            steps=schedule.steps,
            every=schedule.steps // ROWS,
            key=jr.fold_in(prompts_key, length),
        )

    return jax.vmap(run)(keys)


def short_frame(short: Trainings) -> pd.DataFrame:
    """Return one row per run and twentieth of its training."""
    frames = [
        pd.DataFrame(
            {
                "predictor": activation,
                "length": length,
                "start": start,
                "time": training.times,
                "mean_square": training.loss[start],
                "std_error": training.loss_std_error[start],
            }
        )
        for (activation, length), training in short.items()
        for start in range(len(training.loss))
    ]
    return pd.concat(frames, ignore_index=True)


def ends_of(short: Trainings) -> pd.DataFrame:
    """Return the mean over the last fifth of each short run, with its standard error."""
    runs = ["predictor", "length", "start"]
    last = short_frame(short).groupby(runs, sort=False).tail(ROWS // 5)
    last = last.assign(variance=last["std_error"] ** 2).groupby(runs, sort=False, as_index=False)
    ends = last.agg({"mean_square": "mean", "variance": "sum"})
    return ends.assign(std_error=np.sqrt(ends.pop("variance")) / (ROWS // 5))


def long_ends_of(long: LongRuns) -> pd.DataFrame:
    """Return the last mean square of each tracked run."""
    ends = [(*run, path.risks[-1]) for run, path in sorted(long.items())]
    return pd.DataFrame(ends, columns=["predictor", "length", "start", "mean_square"])
