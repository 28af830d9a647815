"""Compute every run of the published protocol, and seven more starts of each head on up to a hundred tokens.

    python -m chapters.published_experiment.data.every_run [RUN]...

computes the runs that are missing in `every_run/`, or the named runs, and adds each to the tables as soon as it ends.
You can stop the command at any time: a killed run continues from its checkpoint in `_build/checkpoints/`, with the same
bits, when the command is started again. All runs take about three hours of one core. A second process of the same
command uses a second core and computes other runs. `--list` prints all runs, which of them are done, and how long the
rest will take.
"""

import argparse
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from chapters.published_experiment.every_run import (
    BATCH,
    COLUMNS,
    FOLDER,
    Run,
    every_run,
    joined,
    read_every_run,
    rows_of,
    runs_in,
    training,
)
from chapters.published_experiment.protocol import PUBLISHED_STEP_SIZE, PUBLISHED_STEPS
from companion import Table
from companion.authoring.checkpoints import Checkpoint
from companion.authoring.datasets import Result, keep, origin_of
from companion.io import atomic
from companion.io.errors import did_you_mean
from companion.project.paths import Project

COMMAND = "python -m chapters.published_experiment.data.every_run"
PARAMETERS = {
    "steps": PUBLISHED_STEPS,
    "step_size": PUBLISHED_STEP_SIZE,
    "batch": BATCH,
    "sampling": "batch_loss",
    "precision": "float32",
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="name of a run, such as softmax-corrected-10-0 (default: all runs)"
    )
    parser.add_argument("--list", action="store_true", help="list the runs with those that are done, and stop")
    asked = parser.parse_args()
    named = {run.name: run for run in every_run()}
    for name in asked.runs:
        if name not in named:
            parser.error(f"there is no run {name!r}. {did_you_mean(name, named)}")
    wanted = [named[name] for name in asked.runs] or list(named.values())
    done = runs_in(read_every_run())
    left = [run for run in wanted if run not in done]
    if asked.list:
        for run in wanted:
            print(f"{'✓' if run in done else ' '} {run.name}")
    hours = sum(map(_seconds, left)) / 3600
    print(f"{len(wanted) - len(left)} of {len(wanted)} runs are there; the rest takes about {hours:.1f} core-hours.")
    if not asked.list:
        compute(left)


def compute(runs: list[Run]) -> None:
    """Compute runs one after another, and print a line for each run that ends."""
    # XLA does not parallelise such small steps, and they take half again as long if it prepares to
    os.environ.setdefault("NPROC", "1")
    project = Project.here()
    project.settings.open_context()
    origin = origin_of(project)  # before the first table is written, because git reports it as modified
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn()) as bars:
        bar = bars.add_task("all", total=sum(map(_seconds, runs)))
        for i, run in enumerate(runs):
            if _computed_here(run, project.generated / "checkpoints", origin, bars):
                left = runs[i + 1 :]
                rest = timedelta(seconds=round(sum(map(_seconds, left))))
                bars.print(f"{run.name} is kept; {len(left)} runs are left, about {rest} of one core")
            bars.advance(bar, _seconds(run))


def _computed_here(run: Run, folder: Path, origin: dict[str, Any], bars: Progress) -> bool:
    """Compute a run and add it to the tables, unless another process has done so or is doing so."""
    place = folder / f"published_experiment-every-{run.name}.npz"
    lock = place.with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    with atomic.if_free(lock) as free:
        if not free or run in runs_in(read_every_run()):
            return False
        bar = bars.add_task(run.name, total=PUBLISHED_STEPS)

        def tell(step: int, loss: float) -> None:
            bars.update(bar, completed=step, description=f"{run.name}: mean square {loss:.4f}")

        history = training(run, checkpoint=Checkpoint(place, f"{run.name}, {PUBLISHED_STEPS} steps"), tell=tell)
        bars.remove_task(bar)
        ended = rows_of(run, history)
        with atomic.locked(folder / "published_experiment-every.lock", "waiting for another process that keeps a run"):
            for name, frame in joined(read_every_run(), ended).items():
                result = Result(Table(frame, dict(COLUMNS[name])), PARAMETERS)
                keep(FOLDER, name, result, {"command": COMMAND, **origin})
        place.unlink()
    return True


def _seconds(run: Run) -> float:
    return PUBLISHED_STEPS * run.effort * 1e-6


if __name__ == "__main__":
    main()
