"""Shared style of the figures of this chapter, and the smallest difference between distinct risks."""

# Risks that differ by this much are distinct: quadratures and searches are accurate to 1e-6 or better.
DISTINCT = 1e-4
DASHES = {"softmax": "-", "sigmoid": "--", "linear": ":"}
TITLES = {"spiked": "spiked model", "max": "max model"}


def dot(normalised: bool, exponential: bool) -> dict:
    """Return the marker of an activation: filled if it is normalised, round if it grows exponentially."""
    return {
        "marker": "o" if exponential else "s",
        "color": "C0" if normalised else "C1",
        "fillstyle": "full" if normalised else "none",
        "linestyle": "",
        "markersize": 9,
        "markeredgewidth": 2,
    }
