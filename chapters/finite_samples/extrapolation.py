"""Training runs in growing dimension, taken to where theory speaks: D → ∞."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.finite_samples.theory import QUANTITIES, Measured, Trained
from lib.statistics import extrapolate_to_infinite_size


def extrapolate(runs: pd.DataFrame) -> Trained:
    """Each quantity at D → ∞, by head and sample ratio."""
    return {
        setting: {
            name: Measured(*extrapolate_to_infinite_size(mine["dimension"].to_numpy(float), mine[name].to_numpy()))
            for name in QUANTITIES
        }
        for setting, mine in runs.groupby(["head", "alpha"], sort=False)
    }


def deviations(
    curves: Trained, limits: Trained, compared: Sequence[float], name: str
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Simulation minus replica in combined standard errors; then the same against the neighbouring ratio."""
    ratios, right, wrong = np.asarray(compared), [], []
    for alpha in compared:
        others = ratios[ratios != alpha]
        nearest = float(others[np.argmin(np.abs(np.log(others / alpha)))])
        for quantity in QUANTITIES:
            run, own, other = limits[name, alpha], curves[name, alpha], curves[name, nearest]
            error = np.hypot(run[quantity].std_error, own[quantity].std_error)
            right.append((run[quantity].value - own[quantity].known) / error)
            wrong.append((run[quantity].value - other[quantity].known) / error)
    return np.asarray(right), np.asarray(wrong)
