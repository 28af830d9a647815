"""Drawing code that the figures of several chapters share."""

from collections.abc import Iterable
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap

from companion.figures.style import INK, PAPER, contrast, markers, sequence


def coloured(values: Iterable[Any]) -> list[tuple[Any, Any, str]]:
    """Return each of the ordered values with its colour and its marker."""
    values = list(values)
    return list(zip(values, sequence(len(values)), markers(len(values)), strict=True))


def coloured_rows(table: pd.DataFrame, column: str) -> list[tuple[Any, pd.DataFrame, Any]]:
    """Return each value of a column in increasing order, with its rows and its colour."""
    groups = list(table.groupby(column))
    return [(value, rows, colour) for (value, rows), colour in zip(groups, sequence(len(groups)), strict=True)]


def readable_on(cell: tuple[float, ...]) -> str:
    """Return the text colour for a cell of this colour: dark or light, whichever has the larger contrast."""
    return max((INK, PAPER), key=lambda colour: contrast(colour, cell))


def signed_colours() -> LinearSegmentedColormap:
    """Return colours of signed numbers, in which zero has the colour of the background."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return LinearSegmentedColormap.from_list("signed", [cycle[3], mpl.rcParams["axes.facecolor"], cycle[2]], N=21)
