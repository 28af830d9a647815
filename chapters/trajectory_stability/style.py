"""Elements that the pictures of this chapter share: series by task, lines of slopes, and ticks."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from companion.figures.style import ink, label, ticks_at

# Colour, and vertical shift of the name in points, of the tasks that are not linear regressions. The linear ones, with
# tokens of several distributions, have one colour.
OTHERS = {"tanh target": ("C4", 7), "classification": ("C2", -7)}
# Bars are drawn upwards only if a bar downwards would leave less than this fraction of the value.
LEAST = 0.1


def series(axes: Axes, frame: pd.DataFrame, column: str, *, named: bool = True) -> None:
    """Draw one series per task against the prompt length, with names and two standard errors, on logarithmic axes.

    Linear regressions have one colour, and the control has the colour of the text.
    """
    axes.set(xscale="log", yscale="log")
    together = []
    for task, points in frame.groupby("task", sort=False):
        colour, up = (ink(), 0) if "control" in task else OTHERS.get(task, ("C0", 0))
        values, reach = points[column], 2 * points[f"{column}_std_error"]
        bars = (np.where(reach < (1 - LEAST) * values, reach, 0.0), reach)
        look = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.2, "elinewidth": 1.5, "capsize": 2}
        axes.errorbar(points["length"], values, bars, **look)
        if task not in OTHERS and colour == "C0":
            together.append(values.iloc[-1])
        elif named:
            name = task.replace(" (control)", "\n(exponential tails)")
            label(axes, points["length"].iloc[-1], values.iloc[-1], name, colour, xytext=(6, up))
    if named:
        middle = np.exp(np.mean(np.log(together)))
        label(axes, frame["length"].max(), middle, "linear\nregressions", "C0", linespacing=0.95)


def power_line(axes: Axes, lengths: pd.Series, height: float, power: float, style: str = ":") -> None:
    """Draw a power of the length that has the value `height` at the shortest length."""
    low, high = lengths.min(), lengths.max()
    axes.plot([low, high], [height, height * (high / low) ** power], color=ink(), linestyle=style, linewidth=1.5)


def length_ticks(axes: Axes, frame: pd.DataFrame) -> None:
    """Set ticks at the lengths of the prompts."""
    ticks_at(axes.xaxis, sorted(frame["length"].unique()))
