"""Random keys of the simulated prompts of this chapter."""

from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray


class Keys(NamedTuple):
    """One key per simulation of the chapter."""

    retrieval: PRNGKeyArray
    regression: PRNGKeyArray


def keys(seed: int) -> Keys:
    """Return the keys of the chapter, both from `seed`.

    The first of three keys is that of the chapter `temperature_and_length`, so the chapters share no random numbers.
    """
    _, retrieval, regression = jr.split(jr.key(seed), 3)
    return Keys(retrieval, regression)


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """Return a NumPy generator seeded by a key, for draws of many shapes, each of which JAX would compile."""
    return np.random.default_rng(np.asarray(jr.key_data(key)))
