"""Train two heads by the published protocol from several starts and with several step sizes; record key and value.

    python -m chapters.opposite_heads.data.make trainings

trains ten runs one after another, in single precision, 25 minutes of one core in all. A killed run continues from its
checkpoint in `_build/checkpoints/`, with the same bits, when the command is started again.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from rich.progress import Progress

from chapters.opposite_heads.exact_risks import regression
from chapters.opposite_heads.training import (
    BATCH,
    DIMENSION,
    LENGTH,
    RUNS,
    STEP_SIZE,
    STEPS_A_ROW,
    PairWeights,
    Run,
    batch_loss,
    pair_of,
)
from companion import Column, Table
from companion.authoring.checkpoints import Checkpoint
from companion.authoring.datasets import Result, make
from companion.project.paths import Project
from lib.flow import train
from lib.icl.heads import best_pair
from lib.random import named_keys

NOISE_VARIANCE = 0.1
COLUMNS = {
    "start": Column("Start: `own` (PyTorch's default), `optimum`, or `rest` (the end of the run `own`)", "name"),
    "step_size": Column("Step size of Adam: `published`, `half` of it, or `decaying` from it to zero", "name"),
    "seed": Column("Seed of start and prompts"),
    "step": Column("Steps of Adam"),
    "key": Column("Key of the nearest opposite pair: half the difference of the mean diagonals of KᵀQ/√6"),
    "value": Column("Value of the nearest opposite pair: half the difference of the entries of OV at the label"),
    "unlike": Column("Root mean square over both heads of the entries of KᵀQ/√6 on covariates, less the mean diagonal"),
    "loss": Column("Mean square error on the fresh prompts of the steps since the previous row"),
    "loss_std_error": Column("Standard error of this mean square, from the spread over steps"),
}


def trainings() -> Result:
    """Return the rows of all runs."""
    task = regression(DIMENSION, NOISE_VARIANCE)
    omega, mu, _ = (float(each) for each in best_pair(task, jnp.log(float(LENGTH))))
    ends: dict[tuple[str, str, int], PairWeights] = {}
    frames = []
    for run in RUNS:
        trajectory = trained(task, run, start_of(run, omega, mu, ends))
        ends[run.start, run.step, run.seed] = jax.tree.map(lambda leaf: leaf[-1], trajectory.params)
        frames.append(rows_of(run, trajectory))
    parameters = {
        "length": LENGTH,
        "dimension": DIMENSION,
        "noise_variance": NOISE_VARIANCE,
        "step_size": STEP_SIZE,
        "batch": BATCH,
        "optimiser": "Adam, b1 0.9, b2 0.999, eps 1e-8; its averages start at zero in each run",
        "precision": "float32",
    }
    return Result(Table(pd.concat(frames, ignore_index=True), COLUMNS), parameters)


def start_of(run: Run, omega: float, mu: float, ends: dict[tuple[str, str, int], PairWeights]) -> PairWeights:
    """Return the weights with which a run starts."""
    if run.start == "rest":
        return ends["own", "published", run.seed]
    with jax.enable_x64(False):
        key = named_keys(run.seed, "weights")["weights"]
        return PairWeights.draw(key=key) if run.start == "own" else PairWeights.opposite(omega, mu, key=key)


def trained(task, run: Run, start: PairWeights) -> Any:
    """Train, from the checkpoint if there is one."""
    place = Project.here().generated / "checkpoints" / f"opposite_heads-{run.name}.npz"
    checkpoint = Checkpoint(place, f"{run.name}, {run.steps} steps")
    with jax.enable_x64(False), Progress() as progress:  # in single precision, as published
        bar = progress.add_task(run.name, total=run.steps)
        reached = train(
            batch_loss(task),
            start,
            optimiser=run.optimiser,
            steps=run.steps,
            every=STEPS_A_ROW,
            key=named_keys(run.seed, f"{run.start} {run.step}")[f"{run.start} {run.step}"],
            resume=checkpoint.load,
        )
        for point in reached:
            checkpoint.save(point.arrays)
            progress.update(bar, completed=int(point.state.step))
    return point.trajectory


def rows_of(run: Run, trajectory: Any) -> pd.DataFrame:
    """Return the rows of one run."""
    key, value, unlike = jax.vmap(pair_of)(trajectory.params)
    columns = {
        "start": run.start,
        "step_size": run.step,
        "seed": run.seed,
        "step": trajectory.times,
        "key": key,
        "value": value,
        "unlike": unlike,
        "loss": trajectory.loss,
        "loss_std_error": trajectory.loss_std_error,
    }
    return pd.DataFrame(
        {name: each if isinstance(each, str | int) else np.asarray(each) for name, each in columns.items()}
    )


if __name__ == "__main__":
    make(__file__, __doc__, {"trainings": trainings})
