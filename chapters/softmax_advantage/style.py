"""What the pictures of this chapter share: sizes, marks, and when two risks differ."""

# Risks that differ by this much are said to differ: quadratures and searches are known to 1e-6 and better.
DISTINCT = 1e-4
WIDE = (9.5, 4.6)
DASHES = {"softmax": "-", "sigmoid": "--", "linear": ":"}
# The order of colours and marks where heads meet random lengths.
HEADS = ("softmax", "linear", "sigmoid", "erf")
TITLES = {"spiked": "spiked model", "max": "max model"}


def dot(normalised: bool, exponential: bool) -> dict:
    """The mark of an activation: filled if it is normalised, round if it grows exponentially."""
    return {
        "marker": "o" if exponential else "s",
        "color": "C0" if normalised else "C1",
        "fillstyle": "full" if normalised else "none",
        "linestyle": "",
        "markersize": 9,
        "markeredgewidth": 2,
    }
