"""Extrapolate training runs in growing dimension to D → ∞, and compare them with theory."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.finite_samples.theory import QUANTITIES, Measured, Trained


def limit_of(dimension: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> Measured:
    """Return the limit of a line in 1/D through runs whose variance falls like 1/D; its error is from their scatter."""
    (_, limit), cov = np.polyfit(1 / dimension, values, 1, w=np.sqrt(dimension), cov=True)
    return Measured(float(limit), float(np.sqrt(cov[1, 1])))


def solve_infinite_size(runs: pd.DataFrame) -> Trained:
    """Return each quantity at D → ∞, by head and sample ratio."""
    return {
        setting: {name: limit_of(group["dimension"].to_numpy(float), group[name].to_numpy()) for name in QUANTITIES}
        for setting, group in runs.groupby(["head", "alpha"], sort=False)
    }


def solve_risk_differences(runs: pd.DataFrame) -> dict[float, Measured]:
    """Return the risk of softmax minus that of linear attention at D → ∞, by sample ratio.

    The runs of both heads have the same prompts, whose randomness partly cancels in the difference of each pair.
    """
    pairs = runs.pivot(index=["alpha", "dimension", "seed"], columns="head", values="risk").reset_index()
    return {
        alpha: limit_of(group["dimension"].to_numpy(float), (group["softmax"] - group["linear"]).to_numpy())
        for alpha, group in pairs.groupby("alpha")
    }


def deviations(
    curves: Trained, limits: Trained, compared: Sequence[float], name: str
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return simulation minus replica in combined standard errors, and the same with replica at the next sample
    ratio."""
    ratios, same_ratio, next_ratio = np.asarray(compared), [], []
    for alpha in compared:
        remaining = ratios[ratios != alpha]
        nearest = float(remaining[np.argmin(np.abs(np.log(remaining / alpha)))])
        for quantity in QUANTITIES:
            run, fixed, neighbour = limits[name, alpha], curves[name, alpha], curves[name, nearest]
            error = np.hypot(run[quantity].std_error, fixed[quantity].std_error)
            same_ratio.append((run[quantity].value - fixed[quantity].known) / error)
            next_ratio.append((run[quantity].value - neighbour[quantity].known) / error)
    return np.asarray(same_ratio), np.asarray(next_ratio)
