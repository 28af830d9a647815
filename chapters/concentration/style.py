"""Shared style of the figures of this chapter."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from companion.figures.style import few_decades, ink, label

# Symbols of the two gradients in tables and claims.
SYMBOL = {"value": "∇_V", "bilinear": "∇_U"}


def length_axes(axes: Axes, exact: pd.DataFrame) -> None:
    """Set logarithmic axes that show all exact curves, and draw a line of slope -1 below their lowest end."""
    ends, height = np.asarray([exact["length"].max() / 1e5, exact["length"].max() / 30]), exact["error"].min()
    line = 0.2 * height * exact["length"].max() / ends
    axes.plot(ends, line, color=ink(), linestyle="-.", linewidth=1.2)
    label(axes, ends[1], line[1], "slope $-1$", ink(), xytext=(-14, -2), ha="right")
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$")
    axes.set(xlim=(exact["length"].min(), exact["length"].max()), ylim=(height / 3, None))
    few_decades(axes)


def show_gap(axes: Axes, curves: pd.DataFrame, words: str, colour: tuple, lower: pd.Series) -> None:
    """Draw an arrow between `error` and `bound`, a third of the way along, and write their ratio at its right.

    The ratio takes the place of `{}` in `words`. These are between the two highest of the `lower` bounds; if there is
    only one, they are between it and the error.
    """
    place = curves.iloc[len(curves) // 3]
    ends = [(place["length"], place[name]) for name in ("error", "bound")]
    axes.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "<->", "color": colour, "shrinkA": 0, "shrinkB": 0})
    ratio = f"$10^{{{np.log10(place['bound'] / place['error']):.0f}}}$"
    heights = [*lower.nlargest(2), place["error"]][:2]
    label(axes, place["length"], np.sqrt(np.prod(heights)), words.format(ratio), colour)
