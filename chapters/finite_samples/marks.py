"""How the pictures of this chapter draw what they share."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

COLOURS = {"softmax": "C0", "linear": "C1", "Bayes-optimal": "C2"}


def plain_ticks(axes: Axes, alphas: pd.Series) -> None:
    """Sample ratios as plain numbers, on an axis that is logarithmic."""
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8) if alphas.min() <= tick <= alphas.max()]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
