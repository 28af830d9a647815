"""What this chapter asks throughout: one head, one query."""

from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.attention import Attention

# What rounding may cost a comparison of numbers of order one in float64.
ROUNDING = 1e-12


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    tokens: PRNGKeyArray
    shuffles: PRNGKeyArray
    paths: PRNGKeyArray
    spreads: PRNGKeyArray
    short_prompts: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


def head() -> Attention:
    """Two-dimensional tokens, nothing symmetric."""
    return Attention([[0.8, 0.2], [-0.1, 0.7]], [[1.0, 0.4], [-0.3, 0.9]])


def first_output(params: Attention) -> Attention:
    """The same head, read at its first output."""
    return Attention(params.bilinear, params.value[:1])


def query() -> Float[np.ndarray, " 2"]:
    """The query z of this chapter."""
    return np.asarray([1.0, 0.7])


def tilt(params: Attention, query: Float[np.ndarray, " 2"]) -> Float[np.ndarray, " 2"]:
    """ξ = Uz."""
    return np.asarray(params.bilinear) @ query
