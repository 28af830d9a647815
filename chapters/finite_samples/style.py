"""Shared style of the figures of this chapter, and the smallest difference between distinct minima."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from companion.figures.style import error_bars, ticks_at

# Objectives with a larger relative difference belong to different minima.
DIFFERENT = 1e-4
COLOURS = {"softmax": "C0", "linear": "C1", "Bayes-optimal": "C2"}


def draw_theory(axes: Axes, curve: pd.DataFrame, quantity: str, colour: str) -> None:
    """Draw a line through the fixed points, with crosses where the iteration did not converge."""
    converged = curve["converged"]
    axes.plot(curve["alpha"], curve[quantity].where(converged), color=colour, linewidth=2)
    if not converged.all():
        axes.plot(curve["alpha"][~converged], curve[quantity][~converged], "x", color=colour)


def draw_runs(axes: Axes, alpha: pd.Series, value: pd.Series, std_error: pd.Series, **style) -> None:
    """Draw hollow markers with two standard errors."""
    error_bars(axes, alpha, value, std_error, fillstyle="none", **style)


def plain_ticks(axes: Axes, alphas: pd.Series) -> None:
    """Label sample ratios as plain numbers on a logarithmic axis."""
    ticks_at(axes.xaxis, [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16) if alphas.min() <= tick <= alphas.max()])


def crossing(theory: pd.DataFrame) -> float:
    """Return the sample ratio from which softmax has a lower risk than linear attention; 0 if it always has."""
    risk = theory[theory["head"].isin(("softmax", "linear"))].pivot(index="alpha", columns="head", values="risk")
    difference, logs = (risk["linear"] - risk["softmax"]).to_numpy(), np.log(risk.index.to_numpy())
    if (difference > 0).all():
        return 0.0
    last = np.flatnonzero(difference <= 0).max()
    return float(np.exp(np.interp(0, difference[last : last + 2], logs[last : last + 2])))
