"""The paper's finite-sample figure at its reported settings: three tokens, two spiked tasks and a max task.

The tables are tracked under `data/`, since the search for ridges and the training runs take an hour:
`published_theory` has replica fixed points at the best ridges without a lower bound, `published_optimal` the
Bayes-optimal risk, and `published_runs` training runs at those ridges.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from chapters.finite_samples.extrapolation import solve_infinite_size
from chapters.finite_samples.style import DIFFERENT
from chapters.finite_samples.theory import QUANTITIES, Measured, Trained
from chapters.finite_samples.training import read_tracked
from lib.single_location import LocationTask, Max, Spiked, bayes_risk, best_risk, linear
from lib.statistics import standard_error

LENGTH = 3
PANELS = SPIKED_WEAK, SPIKED, MAX = "spiked, ν = 1", "spiked, ν = 2", "max, ν = ∞"
# The sample ratios of the curves, up to the largest reported one, and those at which heads are trained.
CURVE_ALPHAS = (0.25, 0.32, 0.4, 0.5, 0.63, 0.8, 1, 1.25, 1.6, 2, 2.5, 3.2, 4, 5, 6.3, 8, 10, 12.5, 16, 20)
RUN_ALPHAS = (0.5, 1, 2, 5, 10, 20)
# Dimensions of the training runs, with the number of seeds at each, and the dimension of the random starts.
RUNS = {200: 12, 400: 6, 800: 3}
RANDOM_STARTS = 400


def tasks() -> Mapping[str, LocationTask]:
    """Return the tasks of the three panels, by name."""
    return dict(zip(PANELS, (Spiked(LENGTH, 1.0), Spiked(LENGTH, 2.0), Max(LENGTH, np.inf)), strict=True))


@dataclass(frozen=True)
class Starts:
    """Training runs on the same prompts from two starts: both mean risks, and how many seeds end at other minima.

    `apart` is the fraction `differing` / `seeds`.
    """

    informed: Measured
    random: Measured
    apart: float
    differing: int
    seeds: int


@dataclass(frozen=True)
class Panel:
    """One task of the figure: both heads by theory and by training, the Bayes-optimal risk, and the best risks."""

    theory: Trained
    trained: Trained
    starts: Mapping[tuple[str, float], Starts]
    optimal: Mapping[float, float]
    floors: Mapping[str, float]


def read_panels() -> dict[str, Panel]:
    """Return the tracked tables by task, and the risks at infinitely many prompts."""
    theory, optimal, runs = (read_tracked(f"published_{name}") for name in ("theory", "optimal", "runs"))
    panels = {}
    for name, task in tasks().items():
        fixed, best, trained = (table[table["panel"] == name] for table in (theory, optimal, runs))
        panels[name] = Panel(
            theory={(row["head"], row["alpha"]): _measured(row) for row in fixed.to_dict("records")},
            trained=solve_infinite_size(trained[trained["start"] == "informed"]),
            starts=_starts(trained[trained["dimension"] == RANDOM_STARTS]),
            optimal=dict(zip(best["alpha"], best["risk"], strict=True)),
            floors={"softmax": float(bayes_risk(task)), "linear": float(best_risk(task, linear))},
        )
    return panels


def _measured(row: Mapping) -> dict[str, Measured]:
    return {name: Measured(row[name], row[f"{name}_error"], row["converged"]) for name in QUANTITIES}


def _starts(runs: pd.DataFrame) -> dict[tuple[str, float], Starts]:
    """Compare both starts by head and sample ratio; runs with equal seeds have equal prompts."""
    pairs = runs.pivot_table(index=["head", "alpha", "seed"], columns="start", values=["risk", "objective"])
    starts = {}
    for (head, alpha), group in pairs.groupby(level=["head", "alpha"], sort=False):
        risks = (group["risk", start].to_numpy() for start in ("informed", "uninformed"))
        informed, random = (Measured(float(risk.mean()), float(standard_error(np.asarray(risk)))) for risk in risks)
        excess = group["objective", "uninformed"] / group["objective", "informed"] - 1.0
        differ = excess.abs() > DIFFERENT
        starts[head, alpha] = Starts(informed, random, float(differ.mean()), int(differ.sum()), len(differ))
    return starts
