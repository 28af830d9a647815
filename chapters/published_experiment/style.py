"""Colours, symbols, lines and ticks that the pictures of this chapter and of `second_minima` share."""

from matplotlib.axes import Axes

COLOURS = {"softmax": "C0", "linear": "C1", "ridge": "C2"}
SYMBOLS = {"softmax": "o", "linear": "s", "ridge": "^"}
MEAN_SQUARE = r"mean square error, $\mathbb{E}(\hat y-y)^2$"


def plain_ticks(axes: Axes) -> None:
    """Label the vertical axis with mean squares as decimals."""
    ticks = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
