r"""Training first follows a hyperbola into the valley, and then drifts along it.

Schematic, for one dimension: the output of a head with key $a$ and gain $b$ on an infinite prompt is $ab$ times the
correct one. The risk is zero on the valley. The gradient flow of infinite prompts keeps $a^2-b^2$. On finite prompts a
slow drift follows, along the valley to smaller keys and larger gains.

Alt: A plane with horizontal axis a and vertical axis b. Two thick curves, one in the upper right and one in the lower
left quadrant, are the valley. Thin hyperbolas with arrows lead into them, turning away from a saddle at the origin. A
diagonal line leads from the origin to the valley. A wide arrow follows the upper right curve from there to the upper
left.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from companion import no_numbers
from companion.figures.style import COLUMN, background, ink

numbers = no_numbers

REACH = 2.5
# Starts (a, b) of the infinite flow off the diagonal, and the length of the steps that follow it.
STARTS = [(-1.6, 2.3), (-0.9, 2.2), (-1.95, 2.15), (2.3, -1.6), (2.2, -0.9), (2.15, -1.95)]
STARTS += [(0.0, 1.2), (1.2, 0.0), (0.0, -1.2), (-1.2, 0.0), (2.4, 1.7), (-2.4, -1.7), (-1.7, -2.4)]
STEP, STEPS = 0.01, 4000


def draw(_) -> Figure:
    """Draw the valley, the hyperbolas that lead into it, the saddle, and the drift."""
    figure, axes = plt.subplots(figsize=(COLUMN, 6.2))
    axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), aspect="equal", xlabel="key $a$", ylabel="gain $b$")
    axes.set(xticks=[0], yticks=[0])
    side = np.linspace(1 / REACH, REACH, 200)
    for sign in (1, -1):
        axes.plot(sign * side, sign / side, color="C2", linewidth=6, alpha=0.75, solid_capstyle="round")
    for start in STARTS:
        _path(axes, _follow(start), ink(), 1.1)
    for start in (0.05, REACH, -0.05, -REACH):
        _path(axes, _follow((start, start)), "C0", 2.6)
    axes.plot(0, 0, marker="o", markersize=10, color=plt.rcParams["axes.facecolor"], markeredgecolor=ink(), zorder=6)
    drift = np.linspace(0.93, 0.5, 50)
    axes.plot(drift, 1 / drift + 0.16, color="C1", linewidth=4, solid_capstyle="butt")
    look = {"arrowstyle": "-|>", "color": "C1", "linewidth": 4, "mutation_scale": 22, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0.46, 2.36), (0.5, 2.16), arrowprops=look)
    words = {"bbox": background(), "zorder": 7, "fontsize": 12}
    axes.text(1.62, 0.83, "valley $ab=1$", color="C2", ha="left", **words)
    axes.text(0.72, 2.2, "later: slow drift", color="C1", ha="left", **words)
    axes.text(0.14, -0.16, "saddle", ha="left", va="center", **words)
    axes.text(0.66, 0.3, "balanced start", color="C0", ha="left", **words)
    axes.text(-0.8, 0.72, "thin: $a^2-b^2$ is constant", ha="right", **words)
    axes.grid(visible=False)
    return figure


def _follow(start: tuple[float, float]) -> np.ndarray:
    """Return the path of the gradient flow a' = b(1 - ab), b' = a(1 - ab) in steps of equal length."""
    path = [np.array(start)]
    for _ in range(STEPS):
        a, b = path[-1]
        velocity = np.array([b, a]) * (1 - a * b)
        if abs(1 - a * b) < 0.02:
            break
        path.append(path[-1] + STEP * velocity / np.linalg.norm(velocity))
    return np.array(path)


def _path(axes: Axes, path: np.ndarray, colour: str, width: float) -> None:
    """Draw a path with an arrow head in its middle."""
    axes.plot(*path.T, color=colour, linewidth=width, alpha=0.9)
    middle = len(path) // 2
    look = {"arrowstyle": "-|>", "color": colour, "mutation_scale": 13, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", path[min(middle + 3, len(path) - 1)], path[middle], arrowprops=look)
