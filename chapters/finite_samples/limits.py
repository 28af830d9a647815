"""Training runs in growing dimension, taken to where theory speaks: D → ∞."""

import numpy as np
import pandas as pd

from chapters.finite_samples.theory import QUANTITIES, Measured, Trained


def extrapolate(runs: pd.DataFrame) -> Trained:
    """Each quantity at D → ∞: least squares in 1/D on the single runs, whose variance falls like 1/D."""
    limits = {}
    for setting, mine in runs.groupby(["head", "alpha"], sort=False):
        size = np.asarray(mine["dimension"], float)
        design = np.stack([np.ones_like(size), size.mean() / size], axis=1) * np.sqrt(size)[:, None]
        inverse = np.linalg.inv(design.T @ design)
        limits[setting] = {}
        for quantity in QUANTITIES:
            target = np.asarray(mine[quantity]) * np.sqrt(size)
            at_infinity, slope = inverse @ design.T @ target
            misfit = target - design @ np.asarray([at_infinity, slope])
            variance = np.sum(misfit**2) / (len(size) - 2)
            limits[setting][quantity] = Measured(at_infinity, np.sqrt(variance * inverse[0, 0]))
    return limits
