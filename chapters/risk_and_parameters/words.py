"""How the claims of this chapter spell a length."""

import numpy as np


def power(length: int) -> str:
    """10⁶ rather than 1000000."""
    exponent = round(np.log10(length))
    return (
        "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        if length == 10**exponent
        else f"{length}"
    )
