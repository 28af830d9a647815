r"""Attention freezes when no token is left under the shifted bell.

Schematic. Each dot is the score of a token, in standard deviations. The density of the scores of an infinite
prompt, multiplied by the weights, is the bell curve shifted by the size $\tau$ of the query. A finite prompt has tokens
only up to about $\sqrt{2\ln L}$. Left, a small query: the output is an average of many tokens. Right, a large one: the
few largest carry the weight.

Alt: Two panels with the same pile of dots in the shape of a bell around zero. Left: a bell curve shifted slightly to
the right covers many dots. Right: the curve lies beyond the rightmost dot, with no dot under it; only the last dots are
filled.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion import no_numbers
from companion.figures.schematics import arrow
from companion.figures.style import WIDE, ink, label

numbers = no_numbers

LENGTH, WIDTH = 160, 0.3
REACH = (-3.4, 9.0)
LAST = np.sqrt(2 * np.log(LENGTH))
PANELS = ((1.0, "small query: many tokens under the bell"), (5.8, "large query: no token under the bell"))


def draw(_) -> Figure:
    """Draw the pile of tokens under a slightly and a strongly shifted bell."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 3.5), sharey=True)
    for axes, (shift, title) in zip(panels, PANELS, strict=True):
        _panel(axes, shift)
        axes.set_title(title, fontsize=12)
    first, height = panels[0], LENGTH * WIDTH / np.sqrt(2 * np.pi)
    name, line = "weighted scores of\nan infinite prompt", {"arrowstyle": "-", "color": ink(), "linewidth": 0.8}
    label(first, PANELS[0][0] + 1, height * np.exp(-0.5), name, "C1", xytext=(36, 4), arrowprops=line)
    label(first, _pile()[0].max(), 0.8, "filled dots:\nlarge weight", "C0", xytext=(46, 24), arrowprops=line)
    return figure


def _panel(axes: Axes, shift: float) -> None:
    column, height = _pile()
    weights = np.exp(shift * (column - column.max()))
    rim = {"edgecolor": "C0", "linewidth": 0.8, "s": 42, "zorder": 3}
    axes.scatter(column, height, color=[("C0", 0.06 + 0.94 * weight) for weight in weights], **rim)
    grid = np.linspace(*REACH, 400)
    bell = LENGTH * WIDTH * np.exp(-0.5 * (grid - shift) ** 2) / np.sqrt(2 * np.pi)
    axes.fill_between(grid, bell, color="C1", alpha=0.18, linewidth=0)
    axes.plot(grid, bell, color="C1", linewidth=2.2)
    peak = LENGTH * WIDTH / np.sqrt(2 * np.pi)
    arrow(axes, (0, peak + 2.2), (shift, peak + 2.2), color="C1", mutation_scale=15, linewidth=2)
    axes.text(shift / 2, peak + 2.8, r"$\tau$", ha="center", va="bottom", color="C1", fontsize=13)
    axes.axvline(LAST, color=ink(), linestyle=":", linewidth=1.2, ymax=0.72)
    axes.set(xlim=REACH, ylim=(0, peak + 6), xlabel="score in standard deviations", xticks=[0, LAST])
    axes.set(xticklabels=["0", r"$\sqrt{2\,\ln L}$"], yticks=[])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)


def _pile() -> tuple[np.ndarray, np.ndarray]:
    """Return the places of the tokens, quantiles of a bell in columns of one width, stacked from the axis upwards."""
    edges = WIDTH * (np.arange(-12, 13) - 0.5)
    density = LENGTH * WIDTH * np.exp(-0.5 * (edges + WIDTH / 2) ** 2) / np.sqrt(2 * np.pi)
    counts = np.round(density).astype(int)
    column = np.repeat(edges + WIDTH / 2, counts)
    return column, np.concatenate([np.arange(count) + 0.5 for count in counts])
