"""Every run of the published protocol: both heads, both covariances, nineteen lengths, more starts on short prompts.

Three tables contain the runs: `ends` and `heads` have one row per run, and `curves` has several. Each run is computed
separately, so that its numbers do not depend on the other runs.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd

from chapters.published_experiment.batches import batch_loss
from chapters.published_experiment.head_points import ALIGNED_ENTRIES, SWAPPED_ENTRIES, points_of
from chapters.published_experiment.protocol import (
    LAWS,
    POOLS,
    PUBLISHED_STEP_SIZE,
    PUBLISHED_STEPS,
    WIDTH,
    SeparateWeights,
    keys_of_tracked_run,
    published_head,
    published_task,
)
from chapters.published_experiment.runs import DATA, STEPS_A_ROW
from companion import Column
from companion.authoring.checkpoints import Checkpoint
from lib.flow import train

FOLDER = DATA / "every_run"
LENGTHS = (*range(10, 100, 10), *range(100, 1001, 100))
# Number of starts for each head and covariances, and the longest prompts with more than one start.
STARTS, MANY = 8, 100
BATCH = 128
# Rows of a curve; and the fraction of the steps after which the mean square is computed before the end.
ROWS, BEFORE = 40, 0.8


class Run(NamedTuple):
    """The parameters of one training of the published protocol."""

    law: str
    activation: str
    length: int
    start: int

    @property
    def name(self) -> str:
        """Return the name of the run, valid in file names."""
        return f"{self.activation}-{self.law.replace(' ', '-')}-{self.length}-{self.start}"

    @property
    def effort(self) -> float:
        """Return the approximate microseconds per step, to estimate the duration of runs."""
        return 35 + 1.3 * self.length if self.activation == "softmax" else 25


RUN = {
    "law": Column("Covariances of the data: corrected, or as the published code draws them", "name"),
    "activation": Column("Head that the run trains: softmax or linear attention", "name"),
    "length": Column("Tokens in a prompt, L", "tokens"),
    "start": Column("Number of the start, which is its seed"),
}
COLUMNS: Mapping[str, Mapping[str, Column]] = {
    "ends": {
        **RUN,
        "risk": Column("Exact mean square error of the head at the end, label noise included"),
        "risk_before": Column(f"Exact mean square error of the head after {BEFORE:.0%} of the steps"),
        "loss": Column("Mean square error on the fresh prompts of the steps between the two"),
        "loss_std_error": Column("Standard error of this mean square, from the spread over steps"),
        "wrong_way": Column("Swapped fraction of the head: |u||a| / (|u||a| + |A||b|)"),
    },
    "heads": {
        **RUN,
        **{f"u{i}{j}": Column(f"Entry ({i}, {j}) of U at the end") for i in range(WIDTH) for j in range(WIDTH - 1)},
        **{f"v{i}": Column(f"Entry {i} of v at the end") for i in range(WIDTH)},
    },
    "curves": {
        **RUN,
        "step": Column("Steps of stochastic gradient descent"),
        "loss": Column("Mean square error on the fresh prompts of the steps since the previous row"),
        "loss_std_error": Column("Standard error of this mean square, from the spread over steps"),
    },
}
Tables = dict[str, pd.DataFrame]


def every_run() -> list[Run]:
    """Return all runs: the first start at every length, then the other starts on short prompts."""
    return [
        Run(law, activation, length, start)
        for starts, longest in ((range(1), max(LENGTHS)), (range(1, STARTS), MANY))
        for length in LENGTHS
        for start in starts
        for law in LAWS
        for activation in sorted(POOLS)
        if length <= longest
    ]


def read_every_run(folder: Path = FOLDER) -> Tables:
    """Return the tracked tables, which may contain some of the runs or none."""
    return {
        name: pd.read_csv(folder / f"{name}.csv")
        if (folder / f"{name}.csv").is_file()
        else pd.DataFrame(columns=list(columns))
        for name, columns in COLUMNS.items()
    }


def runs_in(tables: Tables) -> set[Run]:
    """Return the runs whose ends are in the tables."""
    return set(map(Run._make, tables["ends"][list(RUN)].itertuples(index=False)))


def rows_of(run: Run, trajectory: Any) -> Tables:
    """Return the rows of one run for each table."""
    return {"ends": end_of(run, trajectory), "heads": head_of(run, trajectory), "curves": curve_of(run, trajectory)}


def joined(tables: Tables, rows: Tables) -> Tables:
    """Return the tables with additional rows, in the order of `every_run`."""
    order = {each: i for i, each in enumerate(every_run())}
    together = {}
    for name, new in rows.items():
        frame = pd.concat([tables[name], new], ignore_index=True) if len(tables[name]) else new
        place = [order.get(Run._make(row), len(order)) for row in frame[list(RUN)].itertuples(index=False)]
        together[name] = frame.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)
    return together


def training(
    run: Run,
    *,
    checkpoint: Checkpoint,
    steps: int = PUBLISHED_STEPS,
    every: int = STEPS_A_ROW,
    tell: Callable[[int, float], None] = lambda step, loss: None,
) -> Any:
    """Train in single precision, as published, from the checkpoint if there is one; call `tell(step, loss)`."""
    law_number = list(LAWS).index(run.law)
    with jax.enable_x64(False):
        weights_key, prompts_key = keys_of_tracked_run(run.start)
        loss = batch_loss(
            published_task(LAWS[run.law]),
            run.length,
            batch=BATCH,
            head=published_head,
            pool=POOLS[run.activation],
            weight=1.0,
        )
        reached = train(
            loss,
            SeparateWeights.draw(WIDTH, key=weights_key),
            optimiser=optax.sgd(PUBLISHED_STEP_SIZE),
            steps=steps,
            every=every,
            key=jr.fold_in(jr.fold_in(prompts_key, run.length), law_number),
            resume=checkpoint.load,
        )
        for point in reached:
            checkpoint.save(point.arrays)
            tell(int(point.state.step), float(point.loss))
    return point.trajectory


def end_of(run: Run, trajectory: Any) -> pd.DataFrame:
    """Return the exact mean squares near and at the end, which need no prompts, and the swapped fraction."""
    task = published_task(LAWS[run.law])
    last = len(trajectory.times) - 1
    before = max(round((last + 1) * BEFORE) - 1, 0)
    heads = [_head(trajectory, row) for row in (before, last)]
    judged = [float(_EXACT[run.activation](task, head, float(run.length))) for head in heads]
    losses, errors = (np.asarray(each, float)[before + 1 :] for each in (trajectory.loss, trajectory.loss_std_error))
    ended = {
        "risk": judged[1],
        "risk_before": judged[0],
        "loss": losses.mean(),
        "loss_std_error": np.sqrt(np.sum(errors**2)) / len(errors),
        "wrong_way": swapped_fraction(points_of(heads[1])),
    }
    return pd.DataFrame([run._asdict() | ended])


_EXACT = {
    "softmax": jax.jit(lambda task, head, length: 2 * task.finite_risk(head, jnp.log(length))),
    "linear": jax.jit(lambda task, head, length: 2 * task.linear_head_risk(head, length)),
}


def swapped_fraction(point: np.ndarray) -> float:
    """Return the swapped fraction |u||a| / (|u||a| + |A||b|): 0 at the optimum, 1 at a swapped head."""
    rows, tail = point[SWAPPED_ENTRIES].reshape(2, WIDTH - 1), point[ALIGNED_ENTRIES]
    wrong = np.linalg.norm(rows[0]) * np.linalg.norm(rows[1])
    right = np.linalg.norm(tail[:-1]) * np.abs(tail[-1])
    return float(wrong / (wrong + right))


def head_of(run: Run, trajectory: Any) -> pd.DataFrame:
    """Return the head at the end as a point of the landscape."""
    point = points_of(_head(trajectory, len(trajectory.times) - 1))
    names = [name for name in COLUMNS["heads"] if name not in RUN]
    return pd.DataFrame([run._asdict() | dict(zip(names, point.tolist(), strict=True))])


def _head(trajectory: Any, row: int):
    return published_head(jax.tree.map(lambda leaf: jnp.asarray(leaf[row], float), trajectory.params))


def curve_of(run: Run, trajectory: Any) -> pd.DataFrame:
    """Return rows evenly spaced in the logarithm of the step, each a mean over the steps since the previous row."""
    count = len(trajectory.times)
    ends = np.unique(np.round(np.geomspace(1, count, ROWS)).astype(int))
    losses, errors = (np.asarray(each, float) for each in (trajectory.loss, trajectory.loss_std_error))
    parts = list(zip(np.append(0, ends[:-1]), ends, strict=True))
    rows = {
        "step": np.asarray(trajectory.times)[ends - 1],
        "loss": [losses[a:b].mean() for a, b in parts],
        "loss_std_error": [np.sqrt(np.sum(errors[a:b] ** 2)) / (b - a) for a, b in parts],
    }
    return pd.DataFrame(run._asdict() | rows)
