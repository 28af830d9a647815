"""The risk of long prompts on the minima of the infinite-prompt risk, the valley `bA = Σ⁻¹`.

In whitened coordinates `Σ^{1/2} A Σ^{1/2} = uI` with bu = 1: one number, u, is left. NumPy functions.
"""

import numpy as np

from lib._checks import public


@public
def valley_limit(squared_tilt: np.ndarray | float, dimension: int, noise: float = 0.0) -> np.ndarray | float:
    """Return `lim (2R_L - s²) L = d (1 - 2u²)^{-d/2} [1/(1 - 2u²) + (1 + s²/d)/u²]` on bu = 1, for Σ = I and $τ_w = 1$.

    Without noise any other Σ multiplies it by tr Σ/d.

    Args:
      squared_tilt: u², 0 < u² < ½, any shape.
      dimension: d ≥ 1.
      noise: s², the variance (not the standard deviation) of the labels' noise.

    Returns:
      The limit, of the shape of `squared_tilt`; a float for a float.

    Source: derived here, see book/risk_and_parameters.
    """
    growth = np.exp(-dimension / 2 * np.log1p(-2 * squared_tilt))
    return growth * (dimension / (1 - 2 * squared_tilt) + (dimension + noise) / squared_tilt)


@public
def best_in_the_valley(dimension: int, noise: float = 0.0) -> tuple[float, float]:
    """Return the u² that minimises `valley_limit`, and the minimum.

    x = u² solves `(d + 2)(1 + s²/(d + s²)) x² - (d + 4) x + 1 = 0`, and is about 1/d.

    Args:
      dimension: d ≥ 1.
      noise: s², the variance (not the standard deviation) of the labels' noise.

    Returns:
      u² and the minimum.

    Source: derived here, see book/risk_and_parameters.
    """
    excess = (dimension + 2) * noise / (dimension + noise)
    squared = 2 / (dimension + 4 + np.sqrt(dimension**2 + 4.0 * dimension + 8 - 4 * excess))
    return float(squared), float(valley_limit(squared, dimension, noise))


@public
def price_of_one_head(dimension: int) -> float:
    """Return `min valley_limit / (d (d + 1))`, the least risk of a softmax head over that of linear attention.

    Both risks fall like 1/L, and this is the limit of their ratio, without label noise.

    Args:
      dimension: d ≥ 1.

    Returns:
      The price, above 1.

    Source: derived here, see book/risk_and_parameters.
    """
    return best_in_the_valley(dimension)[1] / (dimension * (dimension + 1.0))
