"""Shared style of the figures of this chapter, and the smallest difference between distinct risks."""

DISTINCT = 1e-4
BECAUSE_DISTINCT = "risks this far apart are distinct: quadratures and searches are accurate to 10⁻⁶ or better"
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
