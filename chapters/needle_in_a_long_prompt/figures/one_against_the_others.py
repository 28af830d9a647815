r"""Linear attention sets the relevant token against the sum of the others, softmax against the largest of them.

Schematic, not to scale. Left: in linear attention the contributions of the other tokens add up, to order $\sqrt L$.
That of the relevant token, about $\sqrt\nu$, exceeds it if $\nu$ is of order $L$. Right: bars are scores $\chi^\star$.
Softmax weights grow exponentially with them, so the relevant token only has to exceed the largest other score.

Alt: Two panels. In each a tall bar, the relevant token, is on the left. Left panel: the bars of the others are stacked
to a pile that is much taller than the first bar. Right panel: the bars of the others are side by side, and the first
bar is taller than the tallest of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion import no_numbers
from companion.figures.style import WIDE, ink

numbers = no_numbers

OTHERS = np.array([0.5, 1.1, 0.3, 1.45, 0.8, 0.2, 1.0, 0.6, 1.3, 0.4, 0.9, 0.7])
RELEVANT = 2.0


def draw(_) -> Figure:
    """Draw the others stacked, for linear attention, and side by side, for softmax."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 3.9))
    bottoms = np.cumsum(OTHERS) - OTHERS
    _relevant(left, "C1")
    left.bar(np.full(len(OTHERS), 2.6), OTHERS, bottom=bottoms, width=1.2, color=("C1", 0.25), edgecolor="C1")
    _note(left, 2.6, OTHERS.sum(), "sum of the others, with\nrandom signs: of order $\\sqrt{L}$")
    left.set(xlim=(-0.2, 5.6), ylim=(0, 1.25 * OTHERS.sum()))
    left.set_title("linear attention: against the sum", color="C1", fontsize=12)
    places = 1.8 + 0.33 * np.arange(len(OTHERS))
    _relevant(right, "C0")
    right.bar(places, OTHERS, width=0.27, color=("C0", 0.25), edgecolor="C0")
    right.axhline(OTHERS.max(), color=ink(), linestyle=":", linewidth=1.3, xmin=0.2)
    _note(right, places[6], OTHERS.max(), "largest of the others, near $\\sqrt{2\\,\\ln L}$")
    right.set(xlim=(-0.2, 5.9), ylim=(0, 1.25 * RELEVANT))
    right.set_title("softmax attention: against the largest", color="C0", fontsize=12)
    for axes in (left, right):
        axes.set(xticks=[], yticks=[])
        axes.grid(visible=False)
        axes.spines["left"].set_visible(False)
    return figure


def _relevant(axes: Axes, colour: str) -> None:
    axes.bar([0.7], [RELEVANT], width=1.2 if colour == "C1" else 0.6, color=colour, edgecolor=colour)
    axes.annotate("the relevant\ntoken", (0.7, RELEVANT), (0, 4), textcoords="offset points", ha="center", va="bottom")


def _note(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), (0, 5), textcoords="offset points", ha="center", va="bottom")
