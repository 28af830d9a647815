"""The floor of the valley: what a long prompt's risk becomes on the heads that an infinite prompt asks for.

Those are `bA = Σ⁻¹`. In whitened coordinates `Σ^{1/2} A Σ^{1/2} = uI` with bu = 1: one number, u, is left.
"""

import numpy as np


def valley_law(squared_tilt: np.ndarray | float, dimension: int, noise: float = 0.0) -> np.ndarray | float:
    """`lim (2R_L - σ²) L = d (1 - 2s)^{-d/2} [1/(1 - 2s) + (1 + σ²/d)/s]` on bu = 1, s = u² < ½, for Σ = I, τ_w = 1.

    `noise` is σ², the variance of the labels' noise. Without noise any other Σ multiplies it by tr Σ/d. Derived here,
    see book/risk_and_parameters.
    """
    growth = np.exp(-dimension / 2 * np.log1p(-2 * squared_tilt))
    return growth * (dimension / (1 - 2 * squared_tilt) + (dimension + noise) / squared_tilt)


def best_in_the_valley(dimension: int, noise: float = 0.0) -> tuple[float, float]:
    """The s that minimises `valley_law`, and the minimum.

    s solves `(d + 2)(1 + σ²/(d + σ²)) s² - (d + 4) s + 1 = 0`, and is about 1/d.
    """
    excess = (dimension + 2) * noise / (dimension + noise)
    squared = 2 / (dimension + 4 + np.sqrt(dimension**2 + 4.0 * dimension + 8 - 4 * excess))
    return float(squared), float(valley_law(squared, dimension, noise))


def price_of_one_head(dimension: int) -> float:
    """The limit of the least risk of one softmax head over that of linear attention, `min valley_law / (d (d + 1))`."""
    return best_in_the_valley(dimension)[1] / (dimension * (dimension + 1.0))


def least_price(dimension: np.ndarray | int) -> np.ndarray | float:
    """What the price exceeds, and is itself above e: `(1 + 2/(d + 1))^{(d + 3)/2}`.

    The least value of `(1 - 2s)^{-(d + 1)/2} / ((d + 1)s)`, at s = 1/(d + 3).
    """
    return np.exp((dimension + 3) / 2 * np.log1p(2 / (dimension + 1)))
