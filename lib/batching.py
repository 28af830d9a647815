"""Many computations of one kind, in batches that fit a cache: compiled once, results cut to what was asked for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Num

# How many numbers one batch may hold unless told otherwise: a few fit a cache, all of them no memory.
TOGETHER = 2**16
# Of tables: large enough to hide the cost of a call, small enough that the padding of a short one is cheap.
BATCH = 64


def map_batched(one: Callable, rows: Any, *, size: int, together: int = TOGETHER) -> Any:
    """`one` of every row of the pytree `rows`, each computation of about `size` numbers, `together` numbers at once.

    The rows are padded to a whole number of batches, or the last would be compiled by itself. Inside `jit` or outside.
    """
    n = len(jax.tree.leaves(rows)[0])
    batch = max(1, min(n, together // size))
    padded = jax.tree.map(lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], -n % batch, axis=0)]), rows)
    return jax.tree.map(lambda leaf: leaf[:n], jax.lax.map(one, padded, batch_size=batch))


def in_batches(program: Callable, *columns: np.ndarray, batch: int = BATCH) -> Any:
    """`program`, which takes `batch` rows of every column at once, over all rows; a pytree of NumPy arrays.

    Every call has one shape, so calls with different numbers of rows share a compilation.
    """
    n = len(columns[0])
    padded = [np.concatenate([column, np.repeat(column[-1:], -n % batch, axis=0)]) for column in columns]
    parts = [program(*(column[i : i + batch] for column in padded)) for i in range(0, n, batch)]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:n], *parts)


def tabulate(function: Callable, *arguments: float | Num[Array, "..."] | Num[np.ndarray, "..."]) -> Any:
    """`function`, which is vectorised, jitted over the broadcast `arguments`; a pytree of arrays of that shape."""
    columns = np.broadcast_arrays(*(np.asarray(argument, np.float64) for argument in arguments))
    values = in_batches(jax.jit(function), *(column.ravel() for column in columns))
    return jax.tree.map(lambda leaf: leaf.reshape(columns[0].shape), values)
