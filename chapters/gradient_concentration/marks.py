"""How the pictures of this chapter draw what they share."""

from matplotlib.lines import Line2D

from companion.style import ink

SIZE = (9.0, 4.6)
MARKERS = ("o", "s", "^", "D", "v", "P")


def line(style: str, width: float = 2.0) -> Line2D:
    """A line for the legend."""
    return Line2D([], [], color=ink(), linestyle=style, linewidth=width)
