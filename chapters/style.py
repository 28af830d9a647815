"""Drawing code that the figures of several chapters share."""

from collections.abc import Sequence
from math import exp, log
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from companion.figures.style import INK, PAPER, contrast, ink, markers, sequence

# ln L of a real prompt: the longest of the network in the chapter `real_heads`.
REAL_PROMPT = log(512)


def coloured(values: Sequence[Any]) -> list[tuple[Any, Any, str]]:
    """Return each of the ordered values with its colour and its marker."""
    return list(zip(values, sequence(len(values)), markers(len(values)), strict=True))


def mark_real_prompt(axes: Axes, *, log_length: bool = False) -> None:
    """Mark the length of a real prompt by a grey tick, on an axis of L, or of ln L with `log_length`."""
    place = REAL_PROMPT if log_length else exp(REAL_PROMPT)
    axes.axvline(place, ymax=0.03, color=ink(), alpha=0.45, linewidth=3, solid_capstyle="butt", zorder=3)


def readable_on(cell: tuple[float, ...]) -> str:
    """Return the text colour for a cell of this colour: dark or light, whichever has the larger contrast."""
    return max((INK, PAPER), key=lambda colour: contrast(colour, cell))


def signed_colours() -> LinearSegmentedColormap:
    """Return colours of signed numbers, in which zero has the colour of the background."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return LinearSegmentedColormap.from_list("signed", [cycle[3], mpl.rcParams["axes.facecolor"], cycle[2]], N=21)
