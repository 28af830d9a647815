r"""With two relevant tokens softmax must share one unit of weight; a sigmoid need not.

Schematic. Three tokens, of which two (filled) are relevant; bars are their weights in the output. The label is the sum
of the relevant values, so that the right weights are 1, 1 and 0. Left: softmax weights add up to one. A larger scale
of the output doubles all of them, and if the score of one relevant token is a little higher than that of the other,
the two weights differ much. Right: the sigmoid decides for each token separately.

Alt: Two panels with three bars each and a dotted line at one. On the left the two filled bars are one tall and
one short, together one unit. On the right both reach almost the dotted line. The third, pale bar is low in both panels.
"""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from companion import no_numbers
from companion.figures.style import WIDE, ink

numbers = no_numbers

PANELS = {
    "softmax: weights add up to one": ("C0", (0.71, 0.26, 0.03)),
    "sigmoid: each token on its own": ("C2", (0.97, 0.92, 0.08)),
}


def draw(_) -> Figure:
    """Draw the weights of three tokens, by softmax and by a sigmoid."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 3.4), sharey=True)
    for panel, (title, (colour, weights)) in zip(panels, PANELS.items(), strict=True):
        panel.bar(range(3), weights, width=0.6, color=[colour, colour, (colour, 0.25)], edgecolor=colour)
        panel.axhline(1, color=ink(), linestyle=":", linewidth=1.3)
        panel.set_title(title, color=colour, fontsize=12)
        panel.set(xticks=range(3), yticks=[0, 1], ylim=(0, 1.15), xlim=(-0.6, 2.6))
        panel.set_xticklabels(["relevant", "relevant", "other"])
        panel.grid(visible=False)
    panels[0].set_ylabel("weight in the output")
    return figure
