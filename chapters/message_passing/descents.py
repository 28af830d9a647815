"""Gradient descent on the empirical risk of softmax attention, on the prompts of message passing.

Tracked in `data/`: `descent_ridges` and `descended`.
"""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from chapters.message_passing import settings
from chapters.message_passing.settings import COMPARED, HARD, HARD_RUN, HARD_RUNS, Setting, read_tracked
from lib.single_location import simulate_erm, softmax

# An easy setting without a hard phase, and the dimensions of the runs in the easy and the hard setting.
EASY = COMPARED[1]
DIMENSIONS = {EASY: 600, HARD: HARD_RUN["dimension"]}
HARD_ALPHAS = (*settings.HARD_ALPHAS, 4.0)
# Further sample ratios of the state evolution, beyond the hard phase.
BEYOND = (3.5, 4.0)
RUNS = HARD_RUNS
# The random start of `simulate_erm`, and one at the hidden directions.
BEGIN = {"uninformed": None, "informed": lambda truth, key: truth}
# Descent stops at this gradient norm or after this number of steps.
STEPS, FLAT = 2000, 1e-4


def read_message_passing_runs() -> pd.DataFrame:
    """Return the tracked runs of message passing on these prompts, from both starts."""
    passed = read_tracked("passed")
    easy = (passed["length"] == EASY.length) & (passed["snr"] == EASY.snr) & (passed["dimension"] == DIMENSIONS[EASY])
    return pd.concat([passed[easy & (passed["seed"] < RUNS)], read_tracked("hard_runs")], ignore_index=True)


def ridge(setting: Setting, alpha: float) -> tuple[float, float]:
    """Return the best ridges of softmax: by theory in the easy setting, by trial on other prompts in the hard one."""
    if setting == HARD:
        tried = read_tracked("descent_ridges")
        means = tried[tried["alpha"] == alpha].groupby(["ridge_k", "ridge_v"])["risk"].mean()
        ridge_k, ridge_v = means.idxmin()
    else:
        best = read_tracked("best_ridges")
        mine = (best["length"] == setting.length) & (best["snr"] == setting.snr) & (best["head"] == "softmax")
        ridge_k, ridge_v = best.loc[mine & (best["alpha"] == alpha), ["ridge_k", "ridge_v"]].iloc[0]
    return float(ridge_k), float(ridge_v)


def descend(
    setting: Setting,
    start: str,
    *,
    alpha: float,
    ridge: tuple[float, float],
    dimension: int,
    seeds: Sequence[int],
    steps: int = STEPS,
) -> Any:
    """Run one descent per seed on the prompts of message passing with this seed; return the results, stacked."""
    how = {
        "alpha": alpha,
        "ridge": ridge,
        "start": BEGIN[start],
        "descent_steps": steps,
        "gradient_tolerance": FLAT,
    }
    return simulate_erm(setting.task, softmax, dimension=dimension, seeds=seeds, noise_std=setting.noise_std, **how)
