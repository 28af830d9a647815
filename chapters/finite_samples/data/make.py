"""The best ridges, training runs at them, and training runs at weak ones.

    python -m chapters.finite_samples.data.make

About ten minutes on one core. `runs` are trained at the `best_ridges` that stand beside them.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from chapters.finite_samples.parameters import ALPHAS
from chapters.finite_samples.theory import predict, ridge_at
from chapters.finite_samples.training import HEADS, LENGTH, NOISE_STD, RUNS, SMALLEST_RIDGE, SNR, STARTS, tracked, train
from companion import Column, Table
from companion.long_runs import Result, make

RIDGE_ALPHAS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
# Weak regularisation: equal ridges of keys and values, at one size.
WEAK_RIDGES, WEAK_ALPHA, WEAK_DIMENSION, WEAK_RUNS = (0.01, 0.03, 0.1, 0.3, 1.0), 1.5, 200, 12
DIGITS = 8
TASK = {"length": LENGTH, "snr": SNR, "noise_std": NOISE_STD}
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
    "seed": Column("Of the run: its key is fold_in(key(seed), dimension)", "name"),
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


def best_ridges() -> Result:
    """The ridges, from `SMALLEST_RIDGE` on, of least replica risk: by the simplex method, on coarse fixed points."""
    rows = []
    for name, activation in HEADS.items():
        logs = np.log([0.5, 0.5] if name == "softmax" else [0.5, 8.0])
        for alpha in RIDGE_ALPHAS:

            def risk(logs, activation=activation, alpha=alpha):
                ridge = np.maximum(np.exp(logs), SMALLEST_RIDGE)
                return float(predict(activation, alpha, ridge, points=512).risk)

            simplex = logs + np.asarray([[0.0, 0.0], [0.4, 0.0], [0.0, 0.4]])
            options = {"xatol": 0.05, "fatol": 1e-4, "initial_simplex": simplex}
            logs = minimize(risk, logs, method="Nelder-Mead", options=options).x
            ridge_k, ridge_v = np.maximum(np.exp(logs), SMALLEST_RIDGE).round(3)
            rows.append({"head": name, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v})
    return Result(Table(pd.DataFrame(rows), RIDGES), {**TASK, "smallest_ridge": SMALLEST_RIDGE}, digits=DIGITS)


def runs() -> Result:
    """Runs at the best ridges, in all dimensions, from the hidden directions."""
    ridges = tracked("best_ridges")
    return _trained(
        train_all(name, "informed", alpha=alpha, ridge=ridge_at(ridges, name, alpha), dimension=size, seeds=range(n))
        for name in HEADS
        for alpha in ALPHAS
        for size, n in RUNS.items()
    )


def weak_ridges() -> Result:
    """Runs at weak ridges, each twice on the same prompts: from the hidden directions, and from random ones."""
    setting = {"alpha": WEAK_ALPHA, "dimension": WEAK_DIMENSION, "seeds": range(WEAK_RUNS)}
    return _trained(
        train_all("softmax", start, ridge=(ridge, ridge), **setting) for ridge in WEAK_RIDGES for start in STARTS
    )


def _trained(tables) -> Result:
    return Result(Table(pd.concat(tables, ignore_index=True), TRAINED), TASK, digits=DIGITS)


def train_all(
    name: str, start: str, *, alpha: float, ridge: tuple[float, float], dimension: int, seeds: Sequence[int]
) -> pd.DataFrame:
    """Training runs of one setting, a row a seed."""
    found = train(name, start, alpha=alpha, ridge=ridge, dimension=dimension, seeds=seeds)
    ridge_k, ridge_v = ridge
    setting = {"head": name, "start": start, "alpha": alpha, "ridge_k": ridge_k, "ridge_v": ridge_v}
    numbers = {**vars(found), **vars(found.overlaps), "dimension": dimension, "seed": seeds}
    return pd.DataFrame({**setting, **{column: numbers[column] for column in TRAINED if column not in setting}})


if __name__ == "__main__":
    make(__file__, __doc__, {"best_ridges": best_ridges, "runs": runs, "weak_ridges": weak_ridges})
