"""How the pictures of this chapter draw what they share."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from companion.style import ink, sequence

SIZE = (8.0, 4.6)
MARKERS = ("o", "s", "^", "D", "v", "P")


def coloured(values: list) -> list[tuple]:
    """Each value with its colour and its marker."""
    return list(zip(values, sequence(len(values)), (MARKERS * 2)[: len(values)], strict=True))


def error_bars(axes: Axes, frame: pd.DataFrame, colour, marker: str, label: str, *, linewidth: float = 0.0) -> None:
    """Simulated errors against length, with two standard errors."""
    axes.errorbar(
        frame["length"],
        frame["error"],
        2 * frame["std_error"],
        color=colour,
        marker=marker,
        markersize=5.5,
        linewidth=linewidth,
        elinewidth=1.5,
        capsize=2,
        label=label,
    )


def slope(axes: Axes, ends: tuple[float, float], height: float) -> None:
    """A line of slope -1, of the given height at 1."""
    x = np.asarray(ends)
    axes.plot(x, height / x, color=ink(), linestyle="-.", linewidth=1.2)


def decades(axes: Axes) -> None:
    """Few ticks, at powers of ten only."""
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_locator(LogLocator(numticks=10))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())


def line(style: str, width: float = 2.0) -> Line2D:
    """A line for the legend."""
    return Line2D([], [], color=ink(), linestyle=style, linewidth=width)
