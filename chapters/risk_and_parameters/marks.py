"""How the pictures of this chapter draw what they share."""

import numpy as np

SIZE = (8.0, 4.5)


def tokens(length: int | float) -> str:
    """`L = 10⁴` for a power of ten, the plain number otherwise."""
    exponent = round(np.log10(length))
    return f"$L=10^{{{exponent}}}$" if length == 10**exponent else f"$L={length:g}$"
