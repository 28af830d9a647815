"""Shared style of the figures of this chapter, and the smallest difference between distinct minima."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from companion.figures.style import error_bars

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
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16) if alphas.min() <= tick <= alphas.max()]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
