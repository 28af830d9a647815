"""How the pictures of this chapter draw what they share."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from companion.style import error_bars, ink, markers

SIZE = (9.0, 4.8)


def series(axes: Axes, frame: pd.DataFrame, column: str) -> None:
    """Against the prompt length, a series a task, with two standard errors, both logarithmic; the control in ink."""
    axes.set(xscale="log", yscale="log")
    tasks = list(dict.fromkeys(frame["task"]))
    for index, (task, marker) in enumerate(zip(tasks, markers(len(tasks)), strict=True)):
        mine = frame[frame["task"] == task]
        look = {"color": ink() if "control" in task else f"C{index}", "marker": marker, "label": task}
        error_bars(
            axes, mine["length"], mine[column], mine[f"{column}_std_error"], linestyle="-", linewidth=1.2, **look
        )


def law(axes: Axes, lengths: pd.Series, height: float, power: float, style: str = ":") -> None:
    """A power of the length, from `height` at the shortest on."""
    low, high = lengths.min(), lengths.max()
    axes.plot([low, high], [height, height * (high / low) ** power], color=ink(), linestyle=style, linewidth=1.5)


def length_ticks(axes: Axes, frame: pd.DataFrame) -> None:
    """Ticks where prompts were drawn."""
    lengths = sorted(frame["length"].unique().tolist())
    axes.set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())
