"""How the pictures of this chapter draw what they share."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from companion.style import ink

SIZE = (9.0, 4.8)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def series(axes: Axes, frame: pd.DataFrame, column: str) -> None:
    """Against the prompt length, a series a task, with two standard errors."""
    tasks = list(dict.fromkeys(frame["task"]))
    for index, (task, colour) in enumerate(zip(tasks, _colours(tasks), strict=True)):
        mine = frame[frame["task"] == task]
        axes.errorbar(
            mine["length"],
            mine[column],
            2 * mine[f"{column}_std_error"],
            color=colour,
            marker=MARKERS[index % len(MARKERS)],
            markersize=5.5,
            linewidth=1.2,
            capsize=2,
            label=task,
        )


def _colours(tasks: list[str]) -> list:
    """The cycle for the tasks; ink for the control, which comes last."""
    return [ink() if "control" in task else f"C{index}" for index, task in enumerate(tasks)]


def law(axes: Axes, lengths: pd.Series, height: float, power: float, style: str = ":") -> None:
    """A power of the length, from `height` at the shortest on."""
    low, high = lengths.min(), lengths.max()
    axes.plot([low, high], [height, height * (high / low) ** power], color=ink(), linestyle=style, linewidth=1.5)


def length_ticks(axes: Axes, frame: pd.DataFrame) -> None:
    """Ticks where prompts were drawn."""
    lengths = sorted(frame["length"].unique().tolist())
    axes.set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())


def line(style: str, width: float = 2) -> Line2D:
    """A line for the legend."""
    return Line2D([], [], color=ink(), linestyle=style, linewidth=width)
