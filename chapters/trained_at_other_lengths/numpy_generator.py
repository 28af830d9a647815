"""A NumPy generator seeded by a random key of JAX."""

import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """Return a NumPy generator seeded by a key, for draws of many shapes, each of which JAX would compile."""
    return np.random.default_rng(np.asarray(jr.key_data(key)))
