"""Number formats that the figures of this chapter share."""

import numpy as np

from companion.figures.style import power_of_ten


def tokens(length: int | float) -> str:
    """Return `L = 10⁴` for a power of ten and the plain number otherwise."""
    return f"$L={power_of_ten(length)}$"


def power(length: int) -> str:
    """Return 10⁶ rather than 1000000, for the statements of claims."""
    exponent = round(np.log10(length))
    return (
        "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        if length == 10**exponent
        else f"{length:,}"
    )
