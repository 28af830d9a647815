"""Colours of the cells of a matrix with signed entries, and of the numbers written on them."""

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap

from companion.figures.style import INK, PAPER, contrast


def readable_on(cell: tuple[float, ...]) -> str:
    """Return the text colour for a cell of this colour: dark or light, whichever has the larger contrast."""
    return max((INK, PAPER), key=lambda colour: contrast(colour, cell))


def signed_colours() -> LinearSegmentedColormap:
    """Return colours of signed numbers, in which zero has the colour of the background."""
    cycle = mpl.rcParams["axes.prop_cycle"].by_key()["color"]
    return LinearSegmentedColormap.from_list("signed", [cycle[3], mpl.rcParams["axes.facecolor"], cycle[2]], N=21)
