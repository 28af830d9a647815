r"""A head weights each token by its score and returns the mean of the weighted tokens, whatever their order.

Schematic. Left: the tokens $z_i$ of a prompt are points, all with the same weight. Middle: the query $z$ gives each
token the weight $e^{\langle Uz,\,z_i\rangle}$, drawn as its area, so tokens in the direction of the arrow count most.
Right: the output is $V$ times the weighted mean (star); the mean without weights is the square.

Alt: Three clouds of points in a row, joined by arrows. On the left all points have one size. In the middle an arrow
points to the upper right, and points are larger the farther they lie in its direction. On the right the points are
pale; a square marks their centre, and a star lies up and right of it.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from companion import no_numbers
from companion.figures.schematics import arrow, canvas
from companion.figures.style import WIDE, background, ink

numbers = no_numbers

TOKENS = 55
TILT = np.array([1.15, 0.65])
CENTRES = (1.25, 4.2, 7.15)
TITLES = ("a prompt: points in no order", "a query weights them", "the output: their mean")


def draw(_) -> Figure:
    """Draw the cloud three times: plain, weighted, and with its two means."""
    figure, axes = canvas(WIDE, 3.2)
    tokens = _tokens()
    weights = np.exp(tokens @ TILT)
    weights /= weights.mean()
    clouds = ((np.ones(TOKENS), 0.75), (weights, 0.75), (weights, 0.35))
    for centre, title, (sizes, alpha) in zip(CENTRES, TITLES, clouds, strict=True):
        axes.text(centre, 0.2, title, ha="center", va="bottom")
        x, y = centre + 0.4 * tokens[:, 0], 1.75 + 0.4 * tokens[:, 1]
        axes.scatter(x, y, s=30 * sizes, color="C0", alpha=alpha, linewidth=0)
    middle = np.array([CENTRES[1], 1.75])
    arrow(axes, tuple(middle), tuple(middle + 0.75 * TILT), linewidth=2.2, mutation_scale=18, zorder=5)
    axes.text(*(middle + 0.8 * TILT), "$Uz$", fontsize=13, va="bottom", zorder=6)
    for left, right in pairwise(CENTRES):
        arrow(axes, (left + 1.28, 1.75), (right - 1.28, 1.75), color="0.5", mutation_scale=20, linewidth=2)
    mean = np.array([CENTRES[2], 1.75])
    moved = mean + 0.5 * (weights @ tokens) / TOKENS
    mark = {"markeredgecolor": ink(), "markerfacecolor": plt.rcParams["axes.facecolor"], "markeredgewidth": 1.6}
    axes.plot(*mean, marker="s", markersize=9, **mark)
    axes.plot(*moved, marker="*", markersize=20, **mark)
    arrow(axes, tuple(mean + 0.2 * (moved - mean)), tuple(mean + 0.82 * (moved - mean)))
    words = {"ha": "center", "zorder": 7, "bbox": background()}
    axes.text(mean[0] - 0.1, mean[1] - 0.14, "plain mean", va="top", **words)
    axes.text(moved[0] - 0.1, moved[1] + 0.22, "weighted mean", **words)
    return figure


def _tokens() -> np.ndarray:
    """Return points that fill a Gaussian cloud evenly: quantiles of the radius on a spiral."""
    places = (np.arange(TOKENS) + 0.5) / TOKENS
    radius, angle = np.sqrt(-2 * np.log1p(-places)), np.pi * (3 - np.sqrt(5)) * np.arange(TOKENS)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
