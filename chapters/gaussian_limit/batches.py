"""Many prompts, in batches that fit a cache."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib.attention import Attention

# How many numbers one batch may hold: a few fit a cache, all of them no memory.
TOGETHER = 2**16


def map_queries(one, queries: Float[Array, "queries ..."], length: int):
    """Queries of one prompt: all at once where they fit together, else one by one."""
    return jax.lax.map(one, queries, batch_size=len(queries) if length * len(queries) <= TOGETHER else 1)


def map_indices(one, n: int, size: int):
    """`one` of 0, 1, …, n - 1, each of about `size` numbers; a whole number of batches compiles once."""
    batch_size = max(1, min(n, TOGETHER // size))
    batches = -(-n // batch_size)
    results = jax.jit(partial(jax.lax.map, one, batch_size=batch_size))(jnp.arange(batches * batch_size))
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:n], results)


def unit_head() -> Attention:
    """U = V = 1, for tokens of one coordinate."""
    return Attention([[1.0]], [[1.0]])
