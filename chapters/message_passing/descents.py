"""Gradient descent on the empirical risk, on the prompts of message passing: softmax attention, from both starts.

Tracked in `data/`: `descent_ridges` and `descended`.
"""

from collections.abc import Sequence

import pandas as pd

from chapters.message_passing import settings
from chapters.message_passing.settings import COMPARED, HARD, HARD_RUN, HARD_RUNS, Setting, tracked
from lib.single_location import ErmResult, full_batch_trainer, informed, simulate_seeds, softmax, uninformed

# A setting without a hard phase, and the dimension at which heads were trained there; the hard one as it was run.
EASY = COMPARED[1]
DIMENSIONS = {EASY: 600, HARD: HARD_RUN["dimension"]}
HARD_ALPHAS = (*settings.HARD_ALPHAS, 4.0)
# Sample ratios at which the evolution is drawn beyond those of the hard phase.
BEYOND = (3.5, 4.0)
RUNS = HARD_RUNS
BEGIN = {"uninformed": uninformed, "informed": informed}
# Where descent stops: where its gradient is so flat, or after so many steps.
STEPS, FLAT = 2000, 1e-4


def messages() -> pd.DataFrame:
    """The tracked runs of message passing on these prompts, from both starts."""
    passed = tracked("passed")
    easy = (passed["length"] == EASY.length) & (passed["snr"] == EASY.snr) & (passed["dimension"] == DIMENSIONS[EASY])
    return pd.concat([passed[easy & (passed["seed"] < RUNS)], tracked("hard_runs")], ignore_index=True)


def ridge(setting: Setting, alpha: float) -> tuple[float, float]:
    """The tracked best ridges of softmax: by theory at the easy setting, by trial on other prompts at the hard one."""
    if setting == HARD:
        tried = tracked("descent_ridges")
        means = tried[tried["alpha"] == alpha].groupby(["ridge_k", "ridge_v"])["risk"].mean()
        ridge_k, ridge_v = means.idxmin()
    else:
        best = tracked("best_ridges")
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
) -> ErmResult:
    """One descent a seed, stacked, on the prompts that message passing sees with the same seed."""
    how = {
        "alpha": alpha,
        "ridge": ridge,
        "start": BEGIN[start],
        "trainer": full_batch_trainer(steps=steps, gradient_tolerance=FLAT),
    }
    return simulate_seeds(setting.task, softmax, dimension=dimension, seeds=seeds, noise_std=setting.noise_std, **how)
