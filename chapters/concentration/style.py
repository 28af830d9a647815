"""Shared style of the figures of this chapter."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from companion.figures.style import few_decades, ink, label

# Symbols of the two gradients in tables and claims.
SYMBOL = {"value": "∇_V", "bilinear": "∇_U"}


def length_axes(axes: Axes, exact: pd.DataFrame, lowest: pd.DataFrame) -> None:
    """Set logarithmic axes that show all exact curves, and draw a line of slope -1 below the end of the lowest one."""
    ends, height = np.asarray([exact["length"].max() / 1e5, exact["length"].max() / 30]), lowest["error"].iloc[-1]
    axes.plot(ends, 0.2 * height * exact["length"].max() / ends, color=ink(), linestyle="-.", linewidth=1.2)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$")
    axes.set(xlim=(exact["length"].min(), exact["length"].max()), ylim=(height / 3, None))
    few_decades(axes)


def shade_gap(axes: Axes, curves: pd.DataFrame, words: str, colour: tuple, *, shift: float = 0) -> None:
    """Shade the gap between `error` and `bound`, and write their ratio in its middle, in place of `{}` in `words`."""
    axes.fill_between(curves["length"], curves["error"], curves["bound"], color=colour, alpha=0.1, linewidth=0)
    middle = curves.iloc[len(curves) // 2]
    ratio = f"$10^{{{np.log10(middle['bound'] / middle['error']):.0f}}}$"
    background = {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 2, "alpha": 0.85}
    look = {"xytext": (0, shift), "ha": "center", "fontsize": 12, "bbox": background, "zorder": 5}
    label(axes, middle["length"], np.sqrt(middle["bound"] * middle["error"]), words.format(ratio), colour, **look)
