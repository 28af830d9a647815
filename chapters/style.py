"""Drawing code that the figures of several chapters share."""

from math import exp, log

from matplotlib.axes import Axes

from companion.figures.style import ink

# ln L of a real prompt: the longest of the network in the chapter `real_heads`.
REAL_PROMPT = log(512)


def mark_real_prompt(axes: Axes, *, log_length: bool = False) -> None:
    """Mark the length of a real prompt by a grey tick, on an axis of L, or of ln L with `log_length`."""
    place = REAL_PROMPT if log_length else exp(REAL_PROMPT)
    axes.axvline(place, ymax=0.03, color=ink(), alpha=0.45, linewidth=3, solid_capstyle="butt", zorder=3)
