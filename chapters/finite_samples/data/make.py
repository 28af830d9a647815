"""Compute the best ridges, training runs at them, and training runs at weak ridges.

    python -m chapters.finite_samples.data.make

This takes about ten minutes on one core for the chapter's own task, an hour more for the paper's three tasks
(`published_…`), and a quarter of an hour for gradient descent and SGD at one of these (`plain_runs`). A run of
`plain_runs` that was killed continues, part by part, from its checkpoint in `_build/checkpoints/`. Runs are trained at
the ridges of `best_ridges` and of `published_ridges`, which are in the same folder.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from rich.progress import track
from scipy.optimize import minimize

from chapters.finite_samples import gradient_training, published_settings
from chapters.finite_samples.parameters import ALPHAS
from chapters.finite_samples.theory import QUANTITIES, quantities_of, ridge_at, solve_fixed_point
from chapters.finite_samples.training import (
    HEADS,
    LENGTH,
    NOISE_STD,
    RUNS,
    SMALLEST_RIDGE,
    SNR,
    STARTS,
    read_tracked,
    train,
)
from companion import Column, Table
from companion.authoring.datasets import Result, in_parts, make
from lib.single_location import LocationTask, bayes_optimal_risk

RIDGE_ALPHAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
# Weak regularisation: equal ridges of keys and values, at one size.
WEAK_RIDGES, WEAK_ALPHA, WEAK_DIMENSION, WEAK_RUNS = (0.01, 0.03, 0.1, 0.3, 1.0), 1.5, 200, 12
DIGITS = 8
TASK = {"length": LENGTH, "snr": SNR, "noise_std": NOISE_STD}
PUBLISHED_TASKS = {"length": published_settings.LENGTH, "tasks": published_settings.PANELS, "noise_std": NOISE_STD}
RIDGES = {
    "head": Column("`softmax` or `linear`", "name"),
    "alpha": Column("Sample ratio α = n/D"),
    "ridge_k": Column("Ridge of the key vector, r_k"),
    "ridge_v": Column("Ridge of the value vector, r_v"),
}
TRAINED = {
    "head": Column("`softmax` or `linear`", "name"),
    "start": Column("From the hidden directions (`informed`) or random ones (`uninformed`)", "name"),
    "alpha": Column("Sample ratio α = n/D"),
    "ridge_k": Column("Ridge of the key vector, r_k"),
    "ridge_v": Column("Ridge of the value vector, r_v"),
    "dimension": Column("Coordinates of a token, D"),
    "seed": Column("Seed of the run; its key is fold_in(key(seed), dimension)", "name"),
    "risk": Column("Excess risk on fresh prompts; answering 0 costs 1"),
    "m_k": Column("k·k*/D"),
    "q_k": Column("|k|²/D"),
    "m_v": Column("v·v*/D"),
    "q_v": Column("|v|²/D"),
    "m_kv": Column("k·v*/D"),
    "m_vk": Column("v·k*/D"),
    "q_vk": Column("k·v/D"),
    "train_loss": Column("Half the mean square error on the training prompts"),
    "objective": Column("The minimised sum over D, ridges included"),
    "flatness": Column("Size of the objective's gradient where L-BFGS stopped, times √D"),
    "steps": Column("Steps of L-BFGS", "steps"),
}


PANEL = {"panel": Column("Task: `spiked, ν = 1`, `spiked, ν = 2` or `max, ν = ∞`", "name")}
PUBLISHED = {
    **PANEL,
    **RIDGES,
    "converged": Column("False where no fixed point was found", "yes or no"),
    **{name: Column(f"{name} of the replica fixed point, as in `published_runs`") for name in QUANTITIES},
    **{f"{name}_error": Column(f"Standard error of {name}: of the quasi-random average") for name in QUANTITIES},
}
PLAIN_SETTING = {
    "method": Column("`gradient descent` on all prompts, or `SGD` on batches of them", "name"),
    **{name: TRAINED[name] for name in ("head", "alpha", "ridge_k", "ridge_v", "dimension", "seed")},
}
# Bounds of the search for ridges, and the risk that stands for a missing fixed point.
WIDEST, LOST = (1e-4, 1e3), 10.0


def best_ridges() -> Result:
    """Return the ridges of least replica risk, at least `SMALLEST_RIDGE`."""
    rows = [
        {"head": name, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v}
        for name in HEADS
        for alpha, (ridge_k, ridge_v) in search(name, RIDGE_ALPHAS, 0.5, (SMALLEST_RIDGE, np.inf), digits=3)
    ]
    return Result(Table(pd.DataFrame(rows), RIDGES), {**TASK, "smallest_ridge": SMALLEST_RIDGE}, digits=DIGITS)


def published_ridges() -> Result:
    """Return the ridges of least replica risk for the paper's three tasks, without a lower bound."""
    rows = [
        {"panel": panel, "head": name, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v}
        for panel, task in published_settings.tasks().items()
        for name in HEADS
        for alpha, (ridge_k, ridge_v) in search(name, published_settings.CURVE_ALPHAS, 1.0, WIDEST, digits=4, task=task)
    ]
    return Result(Table(pd.DataFrame(rows), {**PANEL, **RIDGES}), PUBLISHED_TASKS, digits=DIGITS)


def search(
    name: str,
    alphas: Sequence[float],
    first: float,
    bounds: tuple[float, float],
    *,
    digits: int,
    task: LocationTask | None = None,
) -> Iterator[tuple[float, tuple[float, float]]]:
    """Yield best ridges along sample ratios, by the simplex method on coarse fixed points.

    Each search starts at the result of the previous one.
    """
    logs = np.log([first, first] if name == "softmax" else [first, 8.0])
    for alpha in track(alphas, description=f"ridges of {name}"):

        def risk(logs, alpha=alpha):
            found = solve_fixed_point(HEADS[name], alpha, np.clip(np.exp(logs), *bounds), points=512, task=task)
            return float(found.risk) if found.converged else LOST

        simplex = logs + np.asarray([[0.0, 0.0], [0.4, 0.0], [0.0, 0.4]])
        options = {"xatol": 0.05, "fatol": 1e-4, "initial_simplex": simplex}
        logs = minimize(risk, logs, method="Nelder-Mead", options=options).x
        yield alpha, tuple(np.clip(np.exp(logs), *bounds).round(digits))


def published_theory() -> Result:
    """Return the replica fixed points at those ridges."""
    rows, tasks = [], published_settings.tasks()
    for row in read_tracked("published_ridges").to_dict("records"):
        ridge = (row["ridge_k"], row["ridge_v"])
        fixed = solve_fixed_point(HEADS[row["head"]], row["alpha"], ridge, points=4096, task=tasks[row["panel"]])
        found = quantities_of(fixed)
        values = {name: each.value for name, each in found.items()}
        errors = {f"{name}_error": each.std_error for name, each in found.items()}
        rows.append({**row, "converged": bool(fixed.converged), **values, **errors})
    return Result(Table(pd.DataFrame(rows), PUBLISHED), PUBLISHED_TASKS, digits=DIGITS)


def published_optimal() -> Result:
    """Return the Bayes-optimal risk of the paper's three tasks, by state evolution."""
    rows = [
        {"panel": panel, "alpha": alpha, "risk": bayes_optimal_risk(task, noise_std=NOISE_STD, alpha=alpha).item()}
        for panel, task in published_settings.tasks().items()
        for alpha in published_settings.CURVE_ALPHAS
    ]
    columns = {**PANEL, "alpha": RIDGES["alpha"], "risk": Column("Excess risk of the Bayes-optimal estimator")}
    return Result(Table(pd.DataFrame(rows), columns), PUBLISHED_TASKS, digits=DIGITS)


def published_runs() -> Result:
    """Return runs of the paper's three tasks at those ridges, from the hidden directions and from random ones."""
    ridges, tables = read_tracked("published_ridges"), []
    for panel, task in published_settings.tasks().items():
        for row in ridges[
            (ridges["panel"] == panel) & ridges["alpha"].isin(published_settings.RUN_ALPHAS)
        ].itertuples():
            for start, sizes in (
                ("informed", published_settings.RUNS),
                ("uninformed", [published_settings.RANDOM_STARTS]),
            ):
                for size in sizes:
                    setting = {"alpha": row.alpha, "ridge": (row.ridge_k, row.ridge_v), "dimension": size}
                    seeds = range(published_settings.RUNS[size])
                    found = train_all(row.head, start, **setting, seeds=seeds, task=task)
                    tables.append(found.assign(panel=panel)[[*PANEL, *TRAINED]])
    return Result(Table(pd.concat(tables, ignore_index=True), {**PANEL, **TRAINED}), PUBLISHED_TASKS, digits=DIGITS)


def plain_runs() -> Result:
    """Return runs of gradient descent and SGD, with the random starts, prompts and ridges of `published_runs`."""
    chosen = gradient_training.select_same_prompts(read_tracked("published_runs"))
    settings = chosen[["head", "alpha", "ridge_k", "ridge_v"]].drop_duplicates()
    parts = [
        (method, *row) for method in gradient_training.METHODS for row in settings.itertuples(index=False, name=None)
    ]
    quantities, seeds = [*TRAINED][7:], sorted(chosen["seed"].unique())

    def compute(part):
        method, head, alpha, *ridge = part
        found = gradient_training.train(method, head, alpha=alpha, ridge=tuple(ridge), seeds=seeds)
        return np.stack([np.asarray({**vars(found), **vars(found.overlaps)}[name]) for name in quantities]).ravel()

    kept = in_parts("finite_samples", "plain_runs", parts, compute, len(quantities) * len(seeds))
    tables = [
        pd.DataFrame(
            {
                **dict(zip(PLAIN_SETTING, (*part, gradient_training.DIMENSION), strict=False)),
                "seed": seeds,
                **dict(zip(quantities, numbers.reshape(len(quantities), -1), strict=True)),
            }
        )
        for part, numbers in zip(parts, kept, strict=True)
    ]
    columns = {**PLAIN_SETTING, **{name: TRAINED[name] for name in quantities}, "steps": Column("Steps", "steps")}
    how = {"panel": gradient_training.PANEL, "noise_std": NOISE_STD, **gradient_training.HOW}
    return Result(Table(pd.concat(tables, ignore_index=True), columns), how, digits=DIGITS)


def runs() -> Result:
    """Return runs at the best ridges, in all dimensions, from the hidden directions."""
    ridges = read_tracked("best_ridges")
    return _trained(
        train_all(name, "informed", alpha=alpha, ridge=ridge_at(ridges, name, alpha), dimension=size, seeds=range(n))
        for name in HEADS
        for alpha in ALPHAS
        for size, n in RUNS.items()
    )


def weak_ridges() -> Result:
    """Return runs at weak ridges, twice on the same prompts: from the hidden directions, and from random ones."""
    setting = {"alpha": WEAK_ALPHA, "dimension": WEAK_DIMENSION, "seeds": range(WEAK_RUNS)}
    return _trained(
        train_all("softmax", start, ridge=(ridge, ridge), **setting) for ridge in WEAK_RIDGES for start in STARTS
    )


def _trained(tables) -> Result:
    return Result(Table(pd.concat(tables, ignore_index=True), TRAINED), TASK, digits=DIGITS)


def train_all(
    name: str,
    start: str,
    *,
    alpha: float,
    ridge: tuple[float, float],
    dimension: int,
    seeds: Sequence[int],
    task: LocationTask | None = None,
) -> pd.DataFrame:
    """Return training runs of one setting, one row per seed."""
    found = train(name, start, alpha=alpha, ridge=ridge, dimension=dimension, seeds=seeds, task=task)
    ridge_k, ridge_v = ridge
    setting = {"head": name, "start": start, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v}
    numbers = {**vars(found), **vars(found.overlaps), "dimension": dimension, "seed": seeds}
    return pd.DataFrame({**setting, **{column: numbers[column] for column in TRAINED if column not in setting}})


if __name__ == "__main__":
    own = {"best_ridges": best_ridges, "runs": runs, "weak_ridges": weak_ridges}
    papers = {
        "published_ridges": published_ridges,
        "published_theory": published_theory,
        "published_optimal": published_optimal,
        "published_runs": published_runs,
        "plain_runs": plain_runs,
    }
    make(__file__, __doc__, own | papers)
