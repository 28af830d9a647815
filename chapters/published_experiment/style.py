"""What the pictures of this chapter share; all show plain mean squares."""

from matplotlib.axes import Axes

SIZE = (8.0, 4.5)
COLOURS = {"softmax": "C0", "linear": "C1", "bayes": "C2"}
SYMBOLS = {"softmax": "o", "linear": "s", "bayes": "^"}
# Where descents can stop: the column that holds the level, its name in a legend and its line.
LEVEL_LINES = {
    "optimum": ("optimum", "--"),
    "wrong_way": ("wrong-way head", "-."),
    "second_minimum": ("second minimum", ":"),
}
MEAN_SQUARE = r"mean square $\mathbb{E}(\hat y-y)^2$, no ½"


def plain_ticks(axes: Axes) -> None:
    """Mean squares as decimals."""
    ticks = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
