"""Drawing shared by the figures of this chapter."""

import pandas as pd
from matplotlib.axes import Axes


def draw_band(axes: Axes, curve: pd.DataFrame, colour: str, line: str) -> None:
    """Draw a median and the band around it."""
    axes.fill_between(curve["step"], curve["low"], curve["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(curve["step"], curve["median"], color=colour, linestyle=line, linewidth=2)


def colours(heads: list[str]) -> list[str]:
    """Return the colour of each head: blue for softmax, as in other chapters, and one colour for erf attention."""
    return ["C0" if head.startswith("softmax") else "C3" for head in heads]
