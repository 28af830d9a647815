"""The chapters of this book."""

import numpy as np


def quiet() -> None:
    """What every computation here runs in."""
    np.seterr(all="raise")


def device() -> str:
    """What computes, in words."""
    return "NumPy"
