"""The chapters of this book."""

import numpy as np


def quiet() -> None:
    """Set the context of every computation of this book."""
    np.seterr(all="raise")


def device() -> str:
    """Return the name of the computing device."""
    return "NumPy"
