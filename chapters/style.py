"""Drawing code and phrases that the figures of several chapters share."""

from collections.abc import Iterable
from math import exp, log

from matplotlib.axes import Axes

from companion.figures.style import ink

# ln L of a real prompt: the longest of the network in the chapter `real_heads`.
REAL_PROMPT = log(512)


def mark_real_prompt(axes: Axes, *, log_length: bool = False) -> None:
    """Mark the length of a real prompt by a grey tick, on an axis of L, or of ln L with `log_length`."""
    place = REAL_PROMPT if log_length else exp(REAL_PROMPT)
    axes.axvline(place, ymax=0.03, color=ink(), alpha=0.45, linewidth=3, solid_capstyle="butt", zorder=3)


def listing(items: Iterable[str]) -> str:
    """Return the items as a phrase, such as `20 and 100` or `1, 2 and 4`."""
    *items, last = items
    return f"{', '.join(items)} and {last}" if items else last
