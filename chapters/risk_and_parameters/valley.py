"""The floor of the valley bu = 1: what a long prompt's risk becomes on it, times L, and where it is least."""

import numpy as np


def valley_law(squared_tilt: np.ndarray | float, dimension: int) -> np.ndarray | float:
    """`lim 2R_L L = d (1 - 2s)^{-d/2} [1/(1 - 2s) + 1/s]` on A = uI, bu = 1, s = u² < ½."""
    growth = np.exp(-dimension / 2 * np.log1p(-2 * squared_tilt))
    return dimension * growth * (1 / (1 - 2 * squared_tilt) + 1 / squared_tilt)


def best_in_the_valley(dimension: int) -> tuple[float, float]:
    """The s that minimises `valley_law`, and the minimum: s solves (d + 2)s² - (d + 4)s + 1 = 0, and is about 1/d."""
    squared = 2 / (dimension + 4 + np.sqrt(dimension**2 + 4.0 * dimension + 8))
    return float(squared), float(valley_law(squared, dimension))


def price(dimension: int) -> float:
    """The limit of the least risk of one softmax head over that of linear attention, `min valley_law / (d (d + 1))`."""
    return best_in_the_valley(dimension)[1] / (dimension * (dimension + 1.0))
