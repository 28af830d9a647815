"""The plane of the keys of two heads, and coordinates in which their least risk is smooth."""

import numpy as np

from chapters.laboratory.grids import Values

LARGEST_KEY = 0.6
SHORTEST, LONGEST = np.log(10.0), np.log(1e4)


def keys_at(size: Values, product: Values) -> tuple[Values, Values]:
    """Return half the sum and half the difference of two keys, both nonnegative, at coordinates of the table.

    `product` is q = 2ω₁ω₂/(ω₁² + ω₂²), from -1 for opposite keys to 1 for equal keys, and `size` is
    (ω₁² + ω₂²)/(0.36 (1 + q²)). Sizes up to 1 contain all keys up to 0.6. A risk does not change if the keys are
    exchanged or if both change their signs, so it is a smooth function of ω₁² + ω₂² and ω₁ω₂, also at equal keys.
    """
    squares = size * LARGEST_KEY**2 * (1 + product**2)
    return np.sqrt(squares * (1 + product)) / 2, np.sqrt(squares * (1 - product)) / 2


def coordinates(first: Values, second: Values) -> tuple[Values, Values]:
    """Return `size` and `product` of two keys; `product` is 0 where both keys are 0."""
    first, second = np.broadcast_arrays(np.asarray(first, float), np.asarray(second, float))
    squares = first**2 + second**2
    product = np.divide(2 * first * second, squares, out=np.zeros_like(squares), where=squares > 0)
    return squares / (LARGEST_KEY**2 * (1 + product**2)), product
