"""Tables of a slow function at any number of points, compiled once."""

from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Float

# Large enough to hide the cost of a call, small enough that the padding of a short table is cheap.
BATCH = 64


def tabulate(function: Callable, *arguments: float | Float[np.ndarray, "..."]):
    """`function`, jitted and vectorised over the broadcast `arguments`; a pytree of NumPy arrays of their shape.

    The points go through in batches of one size, so tables of different shapes share a compilation.
    """
    columns = np.broadcast_arrays(*(np.asarray(argument, np.float64) for argument in arguments))
    shape, size = columns[0].shape, columns[0].size
    padding = -size % BATCH
    padded = [np.concatenate([column.ravel(), np.repeat(column.ravel()[-1:], padding)]) for column in columns]
    evaluate = jax.jit(function)
    batches = [evaluate(*(column[i : i + BATCH] for column in padded)) for i in range(0, size + padding, BATCH)]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:size].reshape(shape), *batches)
