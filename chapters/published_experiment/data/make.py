"""Train the published model as published, and record the exact mean square of its heads along the training.

    python -m chapters.published_experiment.data.make softmax_20_0

trains one head with separate query, key, value and output matrices: plain SGD with the published step size on the mean
square of fresh prompts, in single precision. The name of a table contains activation, length and seed. A table takes
minutes, or up to half an hour on slow cores. A killed run continues from its checkpoint in `_build/checkpoints/`, with
the same bits, when it is started again.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from rich.progress import Progress

from chapters.published_experiment.protocol import (
    POOLS,
    PUBLISHED_STEP_SIZE,
    PUBLISHED_STEPS,
    WIDTH,
    SeparateWeights,
    keys_of_tracked_run,
    published_head,
    published_task,
)
from chapters.published_experiment.runs import STEPS_A_ROW
from companion import Column, Table
from companion.authoring.checkpoints import Checkpoint
from companion.authoring.datasets import Result, make
from companion.project.paths import Project
from lib.flow import train
from lib.icl import prompt_loss

# Fresh prompts per step.
BATCH = 128
# Runs that the chapter draws, and runs from other starts, as (activation, length, seed).
DRAWN = [(activation, length, 0) for length in (20, 100) for activation in POOLS]
OTHER_STARTS = [(activation, 20, 1) for activation in POOLS] + [("softmax", 20, start) for start in (2, 3)]
COLUMNS = {
    "step": Column("Steps of stochastic gradient descent"),
    "loss": Column("Mean square error on the fresh prompts of the steps since the previous row"),
    "loss_std_error": Column("Standard error of this mean square, from the spread over steps"),
    "risk": Column("Exact mean square error of the head after this step, label noise included"),
}


def published_run(activation: str, length: int, seed: int) -> Result:
    """Return the table of one run of the published length."""
    name = f"{activation}_{length}_{seed}"
    place = Project.here().generated / "checkpoints" / f"published_experiment-{name}.npz"
    trajectory = published_training(
        activation, length, seed, checkpoint=Checkpoint(place, f"{name}, {PUBLISHED_STEPS} steps")
    )
    parameters = {
        "activation": activation,
        "length": length,
        "seed": seed,
        "steps": PUBLISHED_STEPS,
        "step_size": PUBLISHED_STEP_SIZE,
        "batch": BATCH,
        "sampling": "collapsed",
        "precision": "float32",
    }
    return Result(judged(trajectory, activation, length), parameters)


def published_training(
    activation: str,
    length: int,
    seed: int,
    *,
    checkpoint: Checkpoint,
    steps: int = PUBLISHED_STEPS,
    every: int = STEPS_A_ROW,
) -> Any:
    """Train, from the checkpoint if there is one."""
    with jax.enable_x64(False), Progress() as progress:  # in single precision, as published
        bar = progress.add_task("", total=steps)
        weights_key, prompts_key = keys_of_tracked_run(seed)
        reached = train(
            prompt_loss(published_task(), length, batch=BATCH, head=published_head, pool=POOLS[activation], weight=1.0),
            SeparateWeights.draw(WIDTH, key=weights_key),
            optimiser=optax.sgd(PUBLISHED_STEP_SIZE),
            steps=steps,
            every=every,
            key=jr.fold_in(prompts_key, length),
            resume=checkpoint.load,
        )
        for point in reached:
            checkpoint.save(point.arrays)
            words = f"{activation}, {length} tokens, start {seed}: mean square {point.loss:.4f}"
            progress.update(bar, completed=int(point.state.step), description=words)
    return point.trajectory


def judged(trajectory: Any, activation: str, length: int) -> Table:
    """Return the trajectory as a table with the exact mean square of every recorded head, in double precision."""
    task = published_task()
    if activation == "softmax":
        risk = jax.jit(lambda weights: task.finite_risk(published_head(weights), math.log(length)))
    else:
        risk = jax.jit(lambda weights: task.linear_head_risk(published_head(weights), length))
    weights = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), trajectory.params)
    exact = 2 * np.asarray(jax.lax.map(risk, weights))
    columns = {
        "step": trajectory.times,
        "loss": trajectory.loss,
        "loss_std_error": trajectory.loss_std_error,
        "risk": exact,
    }
    return Table(pd.DataFrame({name: np.asarray(column) for name, column in columns.items()}), COLUMNS)


def table_name(activation: str, length: int, seed: int) -> str:
    """Return the name of a run's table; runs from other starts are in a separate folder."""
    folder = "" if (activation, length, seed) in DRAWN else "other_starts/"
    return f"{folder}{activation}_{length}_{seed}"


if __name__ == "__main__":
    make(__file__, __doc__, {table_name(*run): partial(published_run, *run) for run in DRAWN + OTHER_STARTS})
