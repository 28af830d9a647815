"""How the pictures of this chapter draw what they share."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from companion.figures.style import ink, label

SIZE = (9.0, 4.8)
# Of the tasks with a target of their own: colour, and by how many points a name is moved. The others, linear
# regression on tokens of several laws, are one family and have one colour.
OTHERS = {"tanh target": ("C4", 7), "classification": ("C2", -7)}
# Bars are drawn upwards only where a bar downwards would leave less than this share of the value.
LEAST = 0.1


def series(axes: Axes, frame: pd.DataFrame, column: str, *, named: bool = True) -> None:
    """Against the prompt length, a series a task under its name, with two standard errors, both logarithmic.

    Families of tasks in one colour, the control in ink.
    """
    axes.set(xscale="log", yscale="log")
    together = []
    for task, mine in frame.groupby("task", sort=False):
        colour, up = (ink(), 0) if "control" in task else OTHERS.get(task, ("C0", 0))
        values, reach = mine[column], 2 * mine[f"{column}_std_error"]
        bars = (np.where(reach < (1 - LEAST) * values, reach, 0.0), reach)
        look = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.2, "elinewidth": 1.5, "capsize": 2}
        axes.errorbar(mine["length"], values, bars, **look)
        if task not in OTHERS and colour == "C0":
            together.append(values.iloc[-1])
        elif named:
            label(axes, mine["length"].iloc[-1], values.iloc[-1], task.partition(" (")[0], colour, xytext=(6, up))
    if named:
        middle = np.exp(np.mean(np.log(together)))
        label(axes, frame["length"].max(), middle, "regression,\nfour laws", "C0", linespacing=0.95)


def power_line(axes: Axes, lengths: pd.Series, height: float, power: float, style: str = ":") -> None:
    """A power of the length, from `height` at the shortest on."""
    low, high = lengths.min(), lengths.max()
    axes.plot([low, high], [height, height * (high / low) ** power], color=ink(), linestyle=style, linewidth=1.5)


def length_ticks(axes: Axes, frame: pd.DataFrame) -> None:
    """Ticks where prompts were drawn."""
    lengths = sorted(frame["length"].unique().tolist())
    axes.set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
