"""How the pictures of this chapter draw what they share."""

import numpy as np
from matplotlib.axes import Axes

SIZE = (8.0, 4.5)
MARKERS = ("o", "s", "^", "D", "v", "P")


def power(length: int) -> str:
    """A length as a power of ten where it is one."""
    exponent = round(np.log10(length))
    return f"10^{{{exponent}}}" if 10**exponent == length else f"{length}"


def cycle(n: int) -> list[str]:
    """The first n colours of the sheet."""
    return [f"C{i}" for i in range(n)]


def cycled(values: tuple, n: int) -> list:
    """`n` values, starting over where there are fewer."""
    return [values[i % len(values)] for i in range(n)]


def decades(axes: Axes) -> None:
    """Ticks at powers of ten only, and air at the ends."""
    axes.minorticks_off()
    axes.margins(x=0.1)
