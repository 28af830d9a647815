"""Trainings of two chapters on a GPU, compared with two cores of the same machine; the book shows the tables.

On a machine with a GPU, with JAX for CUDA, the commands

    JAX_PLATFORMS=cpu taskset -c 0,1 python -m benchmarks.gpu_ratio measure FOLDER
    taskset -c 2-15 python -m benchmarks.gpu_ratio measure FOLDER

time trainings at the sizes of the profile `full`, compute all tasks of both chapters in the default profile, and store
times and results in FOLDER. They may run at the same time. `--small` does few steps. Then

    .venv/bin/python -m benchmarks.gpu_ratio keep FOLDER

writes `book/gpu.csv`, `book/gpu_agreement.csv` and `book/gpu_origin.csv`.
"""

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import page  # noqa: E402
from benchmarks.table import origin, processor, versions  # noqa: E402
from chapters.published_experiment.batches import batch_loss  # noqa: E402
from chapters.published_experiment.protocol import WIDTH, SeparateWeights, published_head, published_task  # noqa: E402
from chapters.published_experiment.runs import ROWS  # noqa: E402
from chapters.trajectory_stability.prediction_tasks import Episode  # noqa: E402
from chapters.trajectory_stability.problems import problems  # noqa: E402
from chapters.trajectory_stability.programs import as_flat, keys_at, read_prompts  # noqa: E402
from chapters.trajectory_stability.trajectories import Course, TrainingPlan, training_tasks  # noqa: E402
from companion.authoring.tasks import Arrays, gather  # noqa: E402
from lib.flow import sgd  # noqa: E402
from lib.icl import prompt_loss  # noqa: E402
from lib.measures import _covariance_root, empirical  # noqa: E402

TURNS = 5
CORES, GPU = "cpu", "gpu"
# Precision of matrix products: full, or JAX's default, which may round the factors to TF32 on a GPU.
FULL, DEFAULT = "highest", "default"


@dataclass(frozen=True)
class Setting:
    """A way to compute all tasks: precision of products, and whose eigenvectors the roots of covariances are made of.

    A root of a covariance is made of eigenvectors, which are unique except for their signs. With other signs, the same
    random numbers give other prompts of the same distribution.
    """

    precision: str
    own_eigenvectors: bool

    @property
    def file(self) -> str:
        """Return the name of the results, valid in file names."""
        return f"{self.precision}-{'own' if self.own_eigenvectors else 'shared'}"


SETTINGS = {
    "eigenvectors of the processor": Setting(FULL, False),
    "eigenvectors of the processor, products rounded by default": Setting(DEFAULT, False),
    "eigenvectors of the GPU": Setting(FULL, True),
}
REFERENCE = SETTINGS["eigenvectors of the processor"]
# Parameters of both chapters in the default profile, as in the notebooks; a test compares them.
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "published_experiment": {
        "seed": 0,
        "covariance_bug": False,
        "sgd_lengths": [10, 20],
        "sgd_runs": 2,
        "sgd_steps": 4000,
        "sgd_step_size": 0.05,
        "sgd_batch": 64,
    },
    "trajectory_stability": {
        "seed": 0,
        "tasks": ["Gaussian", "signs", "uniform", "mixture", "tanh target", "classification"],
        "lengths": [16, 40, 100, 256, 640],
        "episodes": 32,
        "steps": 50,
        "step_size": 0.02,
        "runs": 4,
        "prompts": 3072,
        "lengths_per_group": 12,
    },
}
SMALL = {"sgd_steps": 500, "tasks": ["signs"], "lengths": [16, 32, 64, 128], "steps": 8, "runs": 3, "prompts": 256}
# Sizes of the profile `full`: prompt lengths and starts of one chapter, and prompt lengths of the other.
HEADS = (("collapsed prompts", 10), ("collapsed prompts", 100), ("batches by their sums", 100))
LOSSES: Mapping[str, Callable] = {
    "collapsed prompts": prompt_loss,
    "batches by their sums": batch_loss,
}
STARTS, MANY, BATCH, STEP_SIZE = 4, (64, 1024), 128, 1e-3
LENGTHS, EPISODES, RUNS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096), 128, 16
SHOWN = "signs"
LARGEST = "losses"
TIMES, AGREEMENT, ORIGIN = (Path("book") / f"gpu{part}.csv" for part in ("", "_agreement", "_origin"))


@dataclass(frozen=True)
class Way:
    """A way to train: `runs` trainings at once, each of this many steps; `run` returns their losses by name."""

    notebook: str
    training: str
    runs: int
    steps: int
    run: Callable[[], Arrays]


def ways(place: str, small: bool) -> Iterator[Way]:
    """Return the ways to train: as the chapters do; in two threads, one training each; many at once on a GPU."""
    for make, length in HEADS:
        yield of_heads(make, length, STARTS, small)
        if place == CORES:
            yield in_two_threads(of_heads(make, length, 1, small))
        else:
            yield from (of_heads(make, length, many, small) for many in MANY)
    single, together = of_trajectories(small)
    yield single
    yield in_two_threads(single) if place == CORES else together


def of_heads(make: str, length: int, starts: int, small: bool) -> Way:
    """Train a softmax head of `published_experiment` from several starts in one program."""
    steps = 40 if small else 1000
    loss = LOSSES[make](published_task(), length, batch=BATCH, head=published_head, weight=1.0)
    optimiser = optax.sgd(STEP_SIZE)

    def one(key):
        weights_key, prompts_key = jr.split(key)
        start = SeparateWeights.draw(WIDTH, key=weights_key)
        return sgd(loss, start, optimiser=optimiser, steps=steps, every=steps // ROWS, key=prompts_key)

    program = jax.jit(jax.vmap(one))
    keys = jr.split(jr.key(0), starts)

    def run() -> Arrays:
        path = program(keys)
        return {"loss": np.asarray(path.loss), "loss_std_error": np.asarray(path.loss_std_error)}

    return Way("published_experiment", f"softmax, L = {length}, {make}", starts, steps, run)


def of_trajectories(small: bool) -> tuple[Way, Way]:
    """Train the first run of `trajectory_stability` as the chapter does, and all its runs at once."""
    plan = TrainingPlan(LENGTHS, EPISODES, 2 if small else 39, 0.01, RUNS, len(LENGTHS))
    key = jr.key(0)
    course = Course.draw(problems()[SHOWN], plan, key=key)
    first = next(iter(training_tasks(SHOWN, lambda: course, plan, key=key).values()))
    step = step_of_all_runs(course, plan)

    def single() -> Arrays:
        return {"loss": first()["risks"]}

    def every() -> Arrays:
        return {"loss": all_runs(step, course, plan, key=key)[0]}

    name = f"{SHOWN}, {len(LENGTHS)} lengths from {LENGTHS[0]} to {LENGTHS[-1]:,}"
    return (
        Way("trajectory_stability", name, 1, plan.steps + 1, single),
        Way("trajectory_stability", name, plan.runs, plan.steps + 1, every),
    )


def all_runs(step: Callable, course: Course, plan: TrainingPlan, *, key: PRNGKeyArray) -> Float[np.ndarray, "runs t k"]:
    """Train all runs at once, with the prompts of the single runs; return the risks of the drawn prompts."""
    heads = jnp.tile(as_flat(course.problem.start), (plan.runs, len(plan.lengths), 1))
    keys, path = keys_at(key, np.arange(plan.runs)), []
    for number in range(plan.steps + 1):
        heads, risks = step(heads, keys, number)
        path.append(risks)
    return np.stack(path, axis=1)


def step_of_all_runs(course: Course, plan: TrainingPlan) -> Callable:
    """Return the compiled step of all runs."""

    def prompt(episode: Episode, key: PRNGKeyArray) -> Float[Array, "L e"]:
        return empirical(episode.measure, max(plan.lengths), key=key).points

    def step(heads: Float[Array, "k p"], key: PRNGKeyArray, number: int):
        tokens = jax.vmap(prompt)(course.episodes, keys_at(jr.fold_in(key, number), np.arange(plan.episodes)))
        asked = course.episodes.query, course.episodes.target
        values, slopes = read_prompts(course.problem.task.loss, plan.lengths, heads, tokens, asked)
        return heads - plan.step_size * slopes.mean(axis=0), values.mean(axis=0)

    return jax.jit(jax.vmap(step, (0, 0, None)))


def in_two_threads(way: Way) -> Way:
    """Train in two threads at a time."""

    def run() -> Arrays:
        with ThreadPoolExecutor(2) as pool:
            return next(pool.map(lambda _: way.run(), range(2)))

    return Way(way.notebook, way.training, 2 * way.runs, way.steps, run)


# --- measuring --------------------------------------------------------------------------------------------


def measure(folder: Path, small: bool) -> None:
    """Store times and results of this place, the GPU or the cores."""
    place = jax.default_backend()
    folder.mkdir(parents=True, exist_ok=True)
    times, losses = [], {}
    with computing(REFERENCE):
        for way in ways(place, small):
            losses |= {f"{way.training}/{way.runs}/{name}": array for name, array in way.run().items()}
            turns = [_seconds(way) for _ in range(TURNS)]
            times.append({**vars(way), "run": None, "seconds": turns})
            print(place, way.training, way.runs, [f"{each:.3g}" for each in turns], flush=True)
    np.savez_compressed(folder / f"{place}-{LARGEST}.npz", **losses)  # pyright: ignore
    (folder / f"{place}.json").write_text(json.dumps({**machine(), "times": times}, indent=1))
    for notebook, setting in computed(place):
        begun = time.perf_counter()
        with computing(setting):
            results = results_of(notebook, small)
        np.savez_compressed(folder / f"{place}-{notebook}-{setting.file}.npz", **results)  # pyright: ignore
        print(place, notebook, setting.file, f"{time.perf_counter() - begun:.1f} s", flush=True)


def computed(place: str) -> Iterator[tuple[str, Setting]]:
    """Return the notebooks whose tasks are computed, and how; settings differ only for float32 and on a GPU."""
    yield from ((notebook, REFERENCE) for notebook in PARAMETERS)
    if place == GPU:
        yield from (("published_experiment", setting) for setting in SETTINGS.values() if setting != REFERENCE)


def computing(setting: Setting) -> ExitStack:
    """Return the context in which the setting holds."""

    def on_cpu(cov: Array) -> np.ndarray:
        with jax.default_device(jax.local_devices(backend="cpu")[0]), jax.ensure_compile_time_eval():
            return np.asarray(_covariance_root(jnp.asarray(np.asarray(cov))))

    def root(cov: Array) -> Array | np.ndarray:
        if not isinstance(cov, jax.core.Tracer):
            return on_cpu(cov)
        return jax.pure_callback(on_cpu, jax.ShapeDtypeStruct(cov.shape, cov.dtype), cov, vmap_method="sequential")

    contexts = ExitStack()
    contexts.enter_context(jax.default_matmul_precision(setting.precision))
    if not setting.own_eigenvectors:
        contexts.enter_context(patch("lib.icl.training._covariance_root", root))
    return contexts


def _seconds(way: Way) -> float:
    """Return the seconds per step and run of one turn."""
    begun = time.perf_counter()
    way.run()
    return (time.perf_counter() - begun) / way.steps / way.runs


def results_of(notebook: str, small: bool) -> dict[str, np.ndarray]:
    """Return the arrays of all tasks of a notebook, by task and name."""
    parameters = PARAMETERS[notebook]
    changed = {name: value for name, value in SMALL.items() if small and name in parameters}
    tasks = importlib.import_module(f"chapters.{notebook}.tasks").tasks(**{**parameters, **changed})
    return {
        f"{task}/{name}": array
        for task, arrays in zip(tasks, gather(tasks), strict=True)
        for name, array in arrays.items()
    }


def machine() -> dict[str, str]:
    """Return the device that computes, the processor and the versions."""
    return {"device": jax.devices()[0].device_kind, "processor": processor(), "versions": versions()}


# --- keeping ----------------------------------------------------------------------------------------------


def keep(folder: Path) -> None:
    """Write the tables of the book from the times and results of all places."""
    measured = {place: json.loads((folder / f"{place}.json").read_text()) for place in (CORES, GPU)}
    source = {"device": "", **origin(ROOT), **{key: measured[GPU][key] for key in ("device", "processor", "versions")}}
    times = {place: each["times"] for place, each in measured.items()}
    pd.DataFrame(ratios(times)).to_csv(ROOT / TIMES, index=False)
    pd.DataFrame([source]).to_csv(ROOT / ORIGIN, index=False)
    pd.DataFrame(agreements(folder)).to_csv(ROOT / AGREEMENT, index=False)
    page.write(ROOT)


def ratios(times: Mapping[str, list[dict]]) -> list[dict[str, Any]]:
    """Return one row per way of the GPU: the time of the fastest way of two cores divided by its time, by turns."""
    rows = []
    for way in times[GPU]:
        peers = [each["seconds"] for each in times[CORES] if each["training"] == way["training"]]
        cores = min(peers, key=statistics.median)
        pairs = [slow / fast for slow, fast in zip(cores, way["seconds"], strict=True)]
        rows.append(
            {
                "notebook": way["notebook"],
                "training": way["training"],
                "two cores": f"{statistics.median(cores):.3g}",
                "unit": "s",
                "runs": f"{way['runs']:,} at once",
                "gpu": f"{statistics.median(way['seconds']):.3g}",
                "ratio": f"{statistics.median(pairs):.3g}",
                "least": f"{min(pairs):.3g}",
                "greatest": f"{max(pairs):.3g}",
            }
        )
    return rows


def agreements(folder: Path) -> list[dict[str, Any]]:
    """Return the largest differences between GPU and cores, of all tasks and of the losses of the timed trainings."""

    def load(name: str) -> dict[str, np.ndarray]:
        with np.load(folder / f"{name}.npz") as arrays:
            return dict(arrays)

    def row(notebook: str, what: str, old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray]) -> dict[str, Any]:
        how = "double precision" if notebook == "trajectory_stability" else what
        return {"notebook": notebook, "trainings": "default profile", "computed with": how, **agreement(old, new)}

    rows = []
    for notebook, setting in computed(GPU):
        label = next(label for label, each in SETTINGS.items() if each == setting)
        cores, gpu = (load(f"{place}-{notebook}-{each.file}") for place, each in ((CORES, REFERENCE), (GPU, setting)))
        rows.append(row(notebook, label, cores, gpu))
    cores, gpu = load(f"{CORES}-{LARGEST}"), load(f"{GPU}-{LARGEST}")
    label = next(label for label, each in SETTINGS.items() if each == REFERENCE)
    for notebook in PARAMETERS:
        shared = [way for way in cores if way in gpu and (SHOWN in way) == (notebook == "trajectory_stability")]
        timed = row(notebook, label, {way: cores[way] for way in shared}, {way: gpu[way] for way in shared})
        rows.append({**timed, "trainings": "timed above"})
    return rows


def agreement(old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return how many numbers are compared, and their largest differences."""
    names = [name for name in old if not name.endswith("std_error")]
    relative = max(np.abs(new[name] - old[name]).max() / np.abs(old[name]).max() for name in names)
    return {
        "numbers": f"{sum(old[name].size for name in names):,}",
        "relative difference": f"{relative:.2g}",
        "movement": f"{max(movement(old, new, name) for name in names):.2g}",
    }


def movement(old: Mapping[str, np.ndarray], new: Mapping[str, np.ndarray], name: str) -> float:
    """Return the largest difference of an array, in its tolerance.

    The tolerance is five standard errors, or 1e-6 of the largest number of an array without standard errors.
    """
    errors = old.get(f"{name}_std_error")
    tolerance = 1e-6 * np.abs(old[name]).max() if errors is None else 5 * errors
    return float(np.max(np.abs(new[name] - old[name]) / tolerance))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_ratio", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("command", choices=("measure", "keep"))
    parser.add_argument("folder", type=Path, help="folder of times and results")
    parser.add_argument("--small", action="store_true", help="few steps, to try the script")
    chosen = parser.parse_args()
    if chosen.command == "keep":
        keep(chosen.folder)
        return
    jax.config.update("jax_enable_x64", True)
    measure(chosen.folder, chosen.small)


if __name__ == "__main__":
    main()
