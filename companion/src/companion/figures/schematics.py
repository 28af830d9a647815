"""Schematics: pictures that explain a mechanism, without data and without claims.

A figure module with `numbers = no_numbers` is a schematic. It is published like every figure; its table has no column,
and its `draw` receives this empty table. The site shows its code and its origin, but neither claims nor data.
"""

# matplotlib's and pandas' types are incomplete.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from companion.figures.schema import Numbers, Table
from companion.figures.style import ink


def no_numbers() -> Numbers:
    """Return the numbers of a schematic: a table without columns, and no claim."""
    return Numbers(Table(pd.DataFrame(), {}))


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure and its axes without ticks and frame, whose coordinates are inches from the lower left corner."""
    figure, axes = plt.subplots(figsize=(width, height))
    axes.set(xlim=(0, width), ylim=(0, height), aspect="equal")
    axes.axis("off")
    return figure, axes


def box(
    axes: Axes, corner: tuple[float, float], size: tuple[float, float], text: str, colour: str, **look: Any
) -> None:
    """Draw a rectangle with rounded corners around `text`, from its lower left corner; `look` as in `axes.text`."""
    (x, y), (width, height) = corner, size
    axes.add_patch(
        FancyBboxPatch(
            corner, width, height, boxstyle="round,pad=0,rounding_size=0.08", facecolor=(colour, 0.15), edgecolor=colour
        )
    )
    look = {"ha": "center", "va": "center", "fontsize": 11} | look
    axes.text(x + width / 2, y + height / 2, text, **look)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], **look: Any) -> None:
    """Draw an arrow between two points; `look` is that of a `FancyArrowPatch`, such as `connectionstyle`."""
    look = {
        "arrowstyle": "-|>",
        "color": ink(),
        "linewidth": 1.5,
        "mutation_scale": 13,
        "shrinkA": 0,
        "shrinkB": 0,
    } | look
    axes.add_patch(FancyArrowPatch(start, end, **look))
