"""The head and the query of this chapter."""

import numpy as np
from jaxtyping import Float

from lib.attention import Attention

# Largest difference that rounding may make between numbers of order one in float64.
ROUNDING = 1e-12
ROUNDING_REASON = "rounding of numbers of order one in float64, with a margin of some thousand units in the last place"


def head() -> Attention:
    """Return a head on two-dimensional tokens, without any symmetry."""
    return Attention([[0.8, 0.2], [-0.1, 0.7]], [[1.0, 0.4], [-0.3, 0.9]])


def first_output(params: Attention) -> Attention:
    """Return the head restricted to its first output."""
    return Attention(params.bilinear, params.value[:1])


def query() -> Float[np.ndarray, " 2"]:
    """Return the query z of this chapter."""
    return np.asarray([1.0, 0.7])


def tilt(params: Attention, query: Float[np.ndarray, " 2"]) -> Float[np.ndarray, " 2"]:
    """Return the tilt ξ = Uz."""
    return np.asarray(params.bilinear) @ query
