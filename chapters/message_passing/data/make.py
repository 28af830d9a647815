"""Make the tracked tables: message passing and training at the settings of the chapter, and fixed points on a grid.

    python -m chapters.message_passing.data.make

It takes an hour and a half on one core. A run that was killed continues from its checkpoint in `_build/checkpoints/`
when it is started again. `trained` and `descended` read the tables of ridges in the same folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from chapters.message_passing import descents, theory
from chapters.message_passing.descents import BEGIN
from chapters.message_passing.evolution import fixed_point
from chapters.message_passing.settings import (
    ALPHAS,
    COMPARED,
    HARD,
    HARD_ALPHAS,
    HARD_RUN,
    HARD_RUNS,
    ITERATIONS,
    RUNS,
    STARTS,
    Setting,
    infer,
    read_tracked,
)
from companion import Column, Table
from companion.authoring.datasets import Result, in_parts, make
from lib.single_location import Spiked, linear, replica, simulate_erm, softmax
from lib.statistics import standard_error

NAME = "message_passing"
HEADS = {"softmax": softmax, "linear": linear}
SMALLEST_RIDGE = 0.3
# Numbers of quasi-random points: in the search for ridges, and at the best ridges, where the first number is used on
# which the iteration finds a fixed point.
SEARCHED, FINER = 1024, (4096, 2048)
TRAINED_DIMENSION, TRAINED_RUNS = 600, 4
# Grid of softmax ridges at the setting with a hard phase. The seeds of this choice are not used elsewhere.
DESCENT_KEYS, DESCENT_VALUES = (0.3, 1.0, 3.0), (0.5, 1.5, 5.0)
CHOSEN_DIMENSION, CHOSEN_SEEDS, CHOSEN_STEPS = 300, (100, 101), 500
# The grid of the map of the hard phase, and the numbers of quasi-random points of one set. The finer sets are used at
# sample ratios where the state evolution has two fixed points, at the adjacent ratios, and where a standard error is
# above `LARGEST_ERROR`, half of the difference from which on two fixed points count as different. The finest sets are
# used where the error is still larger, and where the free entropies differ by less than `DECIDED` standard errors.
LENGTHS, NOISES = (3, 10, 30), (0.3, 0.1, 0.03, 0.01)
SNRS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
GRID_ALPHAS = np.geomspace(0.8, 10.0, 48).round(4)
GRID_POINTS, FINER_GRID_POINTS, FINEST_GRID_POINTS = 256, 2048, 32768
LARGEST_ERROR, DECIDED = theory.DIFFERENT / 2, 3.0
DIGITS = 8

SETTING = {
    "length": Column("Tokens in a prompt, L", "tokens"),
    "snr": Column("Signal strength ν"),
    "noise_std": Column("Standard deviation Δ of the label noise"),
    "alpha": Column("Sample ratio α = n/D"),
}
PASSED = {
    **SETTING,
    "dimension": Column("Coordinates of a token, D"),
    "seed": Column("Seed of the run, whose random key is fold_in(key(seed), dimension)", "name"),
    "start": Column("`uninformed`: estimates without information; `informed`: close to the truth", "name"),
    "risk": Column("Excess risk after the last iteration; the output 0 has risk 1"),
    "m_k": Column("k̂·k*/D"),
    "m_v": Column("v̂·v*/D"),
    "claimed_k": Column("Estimate of m_k by the algorithm"),
    "claimed_v": Column("Estimate of m_v by the algorithm"),
    "moved": Column("Change of the risk in the last iteration"),
}
RIDGES = {
    **SETTING,
    "head": Column("`softmax` or `linear`", "name"),
    "ridge_k": Column("Best ridge of the key vector, r_k"),
    "ridge_v": Column("Best ridge of the value vector, r_v"),
    "risk": Column("Excess risk by the replica equations"),
    "std_error": Column("Standard error of the risk, from the quasi-random average"),
    "converged": Column("Whether the replica iteration found a fixed point", "yes or no"),
}
TRAINED = {
    **SETTING,
    "head": Column("`softmax` or `linear`", "name"),
    "dimension": Column("Coordinates of a token, D"),
    "seed": Column("Seed of the run, whose random key is fold_in(key(seed), dimension)", "name"),
    "risk": Column("Excess risk of the trained head"),
}
ENDS = {
    "q_k": "Overlap with k* at the fixed point that the state evolution reaches from the",
    "q_v": "Overlap with v* at the fixed point that the state evolution reaches from the",
    "risk": "Excess risk at the fixed point that the state evolution reaches from the",
    "std_error": "Standard error of the excess risk at the fixed point that the state evolution reaches from the",
    "free_entropy": "Free entropy per dimension at the fixed point that the state evolution reaches from the",
}
DESCENDED = {
    **SETTING,
    "ridge_k": Column("Ridge of the key vector, r_k"),
    "ridge_v": Column("Ridge of the value vector, r_v"),
    "dimension": Column("Coordinates of a token, D"),
    "seed": Column("Seed of the run, whose random key is fold_in(key(seed), dimension)", "name"),
    "start": Column("`uninformed`: random directions; `informed`: the hidden ones", "name"),
    "risk": Column("Excess risk at the end of gradient descent; the output 0 has risk 1"),
    "m_k": Column("k·k*/D"),
    "m_v": Column("v·v*/D"),
    "q_k": Column("|k|²/D"),
    "q_v": Column("|v|²/D"),
    "flatness": Column("Norm of the gradient of the objective at the end, times √D"),
    "steps": Column("Steps of gradient descent", "steps"),
}
DESCENT_RIDGES = {**SETTING, **{name: DESCENDED[name] for name in ("ridge_k", "ridge_v", "dimension", "seed", "risk")}}
PHASES = {
    **SETTING,
    "points": Column("Quasi-random points of one set", "points"),
    **{f"{name}_{start}": Column(f"{words} {start} start") for start in STARTS for name, words in ENDS.items()},
    "entropy_std_error": Column("Standard error of the difference of the two free entropies"),
}


def passed() -> Result:
    """Run message passing at the compared settings, in all dimensions, from both starts on the same prompts."""
    parts = [(setting, alpha, size) for setting in COMPARED for alpha in ALPHAS for size in RUNS]
    return _passed("passed", parts, {"iterations": ITERATIONS}, {size: range(n) for size, n in RUNS.items()})


def hard_runs() -> Result:
    """Run message passing where the state evolution has two fixed points."""
    size = HARD_RUN["dimension"]
    parts = [(HARD, alpha, size) for alpha in HARD_ALPHAS]
    how = {name: value for name, value in HARD_RUN.items() if name != "dimension"}
    return _passed("hard_runs", parts, how, {size: range(HARD_RUNS)})


def _passed(name: str, parts: Sequence, how: Mapping[str, Any], seeds: Mapping[int, range]) -> Result:
    most = max(map(len, seeds.values()))
    quantities = [*PASSED][7:]

    def compute(part):
        setting, alpha, size = part
        found = infer(setting, alpha=alpha, dimension=size, seeds=seeds[size], **how)
        numbers = np.full((len(STARTS), len(quantities), most), np.nan)
        for i, start in enumerate(STARTS):
            numbers[i, :, : len(seeds[size])] = numbers_of(found[start])
        return numbers.ravel()

    kept = in_parts(NAME, name, parts, compute, len(STARTS) * len(quantities) * most)
    rows = []
    for (setting, alpha, size), part in zip(parts, kept, strict=True):
        for start, mine in zip(STARTS, part.reshape(len(STARTS), len(quantities), most), strict=True):
            common = {**asdict(setting), "alpha": alpha, "dimension": size, "start": start}
            numbers = dict(zip(quantities, mine[:, : len(seeds[size])], strict=True))
            rows.append(pd.DataFrame({**common, "seed": list(seeds[size]), **numbers}))
    table = pd.concat(rows, ignore_index=True).reindex(columns=list(PASSED))
    return Result(Table(table, PASSED), {**how, "runs": {str(k): len(v) for k, v in seeds.items()}}, digits=DIGITS)


def numbers_of(found) -> np.ndarray:
    """Return the last six columns of `PASSED`, one row per column."""
    overlaps, moved = found.overlaps, np.abs(found.risk[:, -1] - found.risk[:, -2])
    claimed_k, claimed_v = found.estimated[:, -1].T
    return np.stack([found.risk[:, -1], overlaps.m_k[:, -1], overlaps.m_v[:, -1], claimed_k, claimed_v, moved])


def best_ridges() -> Result:
    """Return the ridges of least replica risk, all at least `SMALLEST_RIDGE`, and this risk on finer points."""
    parts = [(setting, head) for setting in COMPARED for head in HEADS]
    kept = in_parts(NAME, "best_ridges", parts, _best_ridges, len(ALPHAS) * 5)
    rows = []
    for (setting, head), part in zip(parts, kept, strict=True):
        numbers = pd.DataFrame(part.reshape(len(ALPHAS), 5), columns=[*RIDGES][5:]).astype({"converged": bool})
        rows.append(pd.DataFrame({**asdict(setting), "alpha": ALPHAS, "head": head}).join(numbers))
    table = pd.concat(rows, ignore_index=True)
    return Result(Table(table, RIDGES), {"smallest_ridge": SMALLEST_RIDGE}, digits=DIGITS)


def _best_ridges(part) -> np.ndarray:
    setting, head = part
    logs, rows = np.log([0.5, 0.5] if head == "softmax" else [0.5, 8.0]), []

    def solve(ridge, alpha, points):
        ridge_k, ridge_v = map(float, ridge)
        return replica(
            setting.task,
            HEADS[head],
            noise_std=setting.noise_std,
            alpha=alpha,
            ridge=(ridge_k, ridge_v),
            points=points,
        )

    for alpha in ALPHAS:

        def risk(logs, alpha=alpha):
            found = solve(np.maximum(np.exp(logs), SMALLEST_RIDGE), alpha, SEARCHED)
            return float(found.risk) if found.converged else np.inf

        simplex = logs + np.asarray([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])
        options = {"xatol": 0.1, "fatol": 3e-4, "initial_simplex": simplex}
        logs = np.maximum(minimize(risk, logs, method="Nelder-Mead", options=options).x, np.log(SMALLEST_RIDGE))
        ridge = np.exp(logs).round(3)
        tried = (solve(ridge, alpha, points) for points in FINER)
        fixed = next((found for found in tried if found.converged), solve(ridge, alpha, SEARCHED))
        rows.append([*ridge, float(fixed.risk), float(fixed.std_error), float(fixed.converged)])
    return np.concatenate(rows)


def trained() -> Result:
    """Train heads by L-BFGS at these ridges, from the hidden directions, on the prompts of message passing."""
    ridges = read_tracked("best_ridges")
    kept = in_parts(NAME, "trained", [tuple(row) for row in ridges[[*RIDGES][:7]].to_numpy()], _trained, TRAINED_RUNS)
    rows = [
        {**{name: row[name] for name in [*RIDGES][:5]}, "dimension": TRAINED_DIMENSION, "seed": seed, "risk": risk}
        for (_, row), part in zip(ridges.iterrows(), kept, strict=True)
        for seed, risk in enumerate(part)
    ]
    return Result(Table(pd.DataFrame(rows).reindex(columns=list(TRAINED)), TRAINED), {}, digits=DIGITS)


def _trained(part) -> np.ndarray:
    length, snr, noise_std, alpha, head, ridge_k, ridge_v = part
    task = Spiked(int(length), float(snr))
    how = {"noise_std": float(noise_std), "alpha": float(alpha), "ridge": (float(ridge_k), float(ridge_v))}
    runs = {"dimension": TRAINED_DIMENSION, "seeds": range(TRAINED_RUNS)}
    return np.asarray(simulate_erm(task, HEADS[head], start=BEGIN["informed"], **runs, **how).risk)


def descent_ridges() -> Result:
    """Run gradient descent of softmax in the hard phase, at a grid of ridges, on prompts used only for this choice."""
    grid = [(ridge_k, ridge_v) for ridge_k in DESCENT_KEYS for ridge_v in DESCENT_VALUES]
    parts = [(alpha, *ridge) for alpha in descents.HARD_ALPHAS for ridge in grid]

    def compute(part):
        alpha, *ridge = part
        how = {"dimension": CHOSEN_DIMENSION, "seeds": CHOSEN_SEEDS, "steps": CHOSEN_STEPS}
        return np.asarray(descents.descend(HARD, "uninformed", alpha=alpha, ridge=tuple(ridge), **how).risk)

    kept = in_parts(NAME, "descent_ridges", parts, compute, len(CHOSEN_SEEDS))
    rows = [
        (*asdict(HARD).values(), *part, CHOSEN_DIMENSION, seed, risk)
        for part, risks in zip(parts, kept, strict=True)
        for seed, risk in zip(CHOSEN_SEEDS, risks, strict=True)
    ]
    return Result(Table(pd.DataFrame(rows, columns=list(DESCENT_RIDGES)), DESCENT_RIDGES), {"steps": CHOSEN_STEPS})


def descended() -> Result:
    """Run gradient descent of softmax from both starts, on prompts of message passing, in both settings."""
    parts = [
        (setting, alpha, *descents.ridge(setting, alpha), start)
        for setting, alphas in ((descents.EASY, ALPHAS), (HARD, descents.HARD_ALPHAS))
        for alpha in alphas
        for start in STARTS
    ]
    quantities, seeds = [*DESCENDED][9:], range(descents.RUNS)

    def compute(part):
        setting, alpha, *ridge, start = part
        how = {"dimension": descents.DIMENSIONS[setting], "seeds": seeds}
        found = descents.descend(setting, start, alpha=alpha, ridge=tuple(ridge), **how)
        return np.stack([np.asarray({**vars(found), **vars(found.overlaps)}[name]) for name in quantities]).ravel()

    kept = in_parts(NAME, "descended", parts, compute, len(quantities) * len(seeds))
    rows = []
    for (setting, alpha, ridge_k, ridge_v, start), part in zip(parts, kept, strict=True):
        common = {**asdict(setting), "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v, "start": start}
        numbers = dict(zip(quantities, part.reshape(len(quantities), -1), strict=True))
        rows.append(pd.DataFrame({**common, "dimension": descents.DIMENSIONS[setting], "seed": seeds, **numbers}))
    table = pd.concat(rows, ignore_index=True).reindex(columns=list(DESCENDED))
    return Result(Table(table, DESCENDED), {"most_steps": descents.STEPS, "flat": descents.FLAT}, digits=DIGITS)


def phases() -> Result:
    """Solve for both fixed points of the state evolution over lengths, signal strengths, noises and sample ratios."""
    parts = [Setting(length, snr, noise) for length in LENGTHS for noise in NOISES for snr in SNRS]
    kept = in_parts(NAME, "phases", parts, _phases, len(GRID_ALPHAS) * (len(PHASES) - 4))
    rows = []
    for setting, part in zip(parts, kept, strict=True):
        numbers = pd.DataFrame(part.reshape(len(GRID_ALPHAS), -1), columns=[*PHASES][4:])
        rows.append(pd.DataFrame({**asdict(setting), "alpha": GRID_ALPHAS}).join(numbers))
    table = pd.concat(rows, ignore_index=True).astype({"points": int})
    points = {"points": GRID_POINTS, "finer_points": FINER_GRID_POINTS, "finest_points": FINEST_GRID_POINTS}
    parameters = {**points, "largest_error": LARGEST_ERROR, "decided": DECIDED}
    return Result(Table(table, PHASES), parameters, digits=5)


def _phases(setting: Setting) -> np.ndarray:
    """Return the columns of `PHASES` after those of the setting, one row per sample ratio."""
    return refined(setting, np.stack([_both_ends(setting, alpha, GRID_POINTS) for alpha in GRID_ALPHAS])).ravel()


def refined(setting: Setting, rows: np.ndarray) -> np.ndarray:
    """Recompute rows of one setting until every row has the number of points that it needs."""
    while True:
        needed = points_needed(pd.DataFrame(rows, columns=[*PHASES][4:]))
        again = np.flatnonzero(needed > rows[:, 0])
        if not again.size:
            return rows
        rows = rows.copy()
        for i in again:
            rows[i] = _both_ends(setting, GRID_ALPHAS[i], int(needed[i]))


def points_needed(ends: pd.DataFrame) -> np.ndarray:
    """Return the number of points of one set that each row needs, along the sample ratios of one setting."""
    finest = undecided(ends) & (ends["points"] >= FINER_GRID_POINTS)
    return np.where(finest, FINEST_GRID_POINTS, np.where(near_two_ends(ends), FINER_GRID_POINTS, GRID_POINTS))


def near_two_ends(ends: pd.DataFrame) -> pd.Series:
    """Return which rows, along the sample ratios of one setting, are recomputed on the finer points."""
    two = theory.has_two_ends(ends)
    return two | two.shift(1, fill_value=False) | two.shift(-1, fill_value=False) | _unsure(ends)


def undecided(ends: pd.DataFrame) -> pd.Series:
    """Return which rows are recomputed on the finest points: their fixed points, or the order of these, may change."""
    apart = (ends["free_entropy_informed"] - ends["free_entropy_uninformed"]).abs()
    return _unsure(ends) | (theory.has_two_ends(ends) & (apart < DECIDED * ends["entropy_std_error"]))


def _unsure(ends: pd.DataFrame) -> pd.Series:
    return ends[[f"std_error_{start}" for start in STARTS]].max(axis=1) > LARGEST_ERROR


def _both_ends(setting: Setting, alpha: float, points: int) -> np.ndarray:
    how = {"noise_std": setting.noise_std, "alpha": alpha, "points": points}
    ends = [fixed_point(setting.task, **how, start_overlap=known) for known in STARTS.values()]
    numbers = [[f.end.q_k, f.end.q_v, f.end.risk, f.std_error, f.free_entropy] for f in ends]
    uninformed, informed = (np.asarray(f.free_entropies) for f in ends)
    return np.asarray([points, *np.ravel(numbers), standard_error(informed - uninformed)])


if __name__ == "__main__":
    tables = {"passed": passed, "hard_runs": hard_runs, "best_ridges": best_ridges, "trained": trained}
    make(__file__, __doc__, {**tables, "phases": phases, "descent_ridges": descent_ridges, "descended": descended})
