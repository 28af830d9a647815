"""How the pictures of this chapter draw what they share."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from companion.figures.style import error_bars

# Objectives that differ by this share of theirs are of different minima.
DIFFERENT = 1e-4
COLOURS = {"softmax": "C0", "linear": "C1", "Bayes-optimal": "C2"}


def draw_theory(axes: Axes, curve: pd.DataFrame, quantity: str, colour: str) -> None:
    """A line through the fixed points, interrupted by crosses where the iteration did not end at one."""
    found = curve["converged"]
    axes.plot(curve["alpha"], curve[quantity].where(found), color=colour, linewidth=2)
    if not found.all():
        axes.plot(curve["alpha"][~found], curve[quantity][~found], "x", color=colour)


def draw_runs(axes: Axes, alpha: pd.Series, value: pd.Series, std_error: pd.Series, **style) -> None:
    """Hollow marks with two of their standard errors."""
    error_bars(axes, alpha, value, std_error, fillstyle="none", **style)


def plain_ticks(axes: Axes, alphas: pd.Series) -> None:
    """Sample ratios as plain numbers, on an axis that is logarithmic."""
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16) if alphas.min() <= tick <= alphas.max()]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
