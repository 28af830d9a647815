"""Drawing that the figures of this chapter share."""

import pandas as pd
from matplotlib.axes import Axes

# The colours of the heads, in the order of the tables.
COLOURS = ("C3", "C4", "C2", "C0")


def draw_band(axes: Axes, curve: pd.DataFrame, colour: str) -> None:
    """Draw a median and the band around it, against the part of all steps."""
    time = curve["step"] / curve["step"].max()
    axes.fill_between(time, curve["low"], curve["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(time, curve["median"], color=colour, linewidth=2)
