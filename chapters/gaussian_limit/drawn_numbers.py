"""Normal and Laplace numbers for the keys of many prompts, drawn by one compiled program for prompts of every length.

`jax.random` compiles a program for each shape, which takes longer than most draws. The numbers are those of
`jax.random`: number i of a key is made of the random bits of the counter i.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.extend.random import threefry_2x32
from jax.scipy.special import erfinv
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt

from lib.batching import in_batches

# Numbers in one call of a program, enough for 2^14 tokens of three dimensions: arrays of so many fit a cache.
TOGETHER = 3 * 2**14


def prompt_keys(key: PRNGKeyArray, prompts: int) -> UInt[np.ndarray, "prompts 2"]:
    """Return the words of the keys of prompts: prompt i has the key folded with i."""
    return in_batches(partial(_folded, key), np.arange(prompts))


@jax.jit
def _folded(key: PRNGKeyArray, indices: Int[np.ndarray, " n"]) -> UInt[Array, "n 2"]:
    return jr.key_data(jax.vmap(partial(jr.fold_in, key))(indices))


def normals(keys: UInt[np.ndarray, "n 2"], count: int) -> Float[np.ndarray, "n count"]:
    """Return `jax.random.normal(key, (count,))` for each key, up to rounding."""
    return _in_pieces(_normal, keys, count)


def laplace_numbers(keys: UInt[np.ndarray, "n 2"], count: int) -> Float[np.ndarray, "n count"]:
    """Return `jax.random.laplace(key, (count,))` for each key, up to rounding."""
    return _in_pieces(_laplace, keys, count)


def _in_pieces(program: Callable, keys: UInt[np.ndarray, "n 2"], count: int) -> Float[np.ndarray, "n count"]:
    """Return the numbers of each key, from a program that maps keys and counters to numbers."""
    shape = len(keys), count
    # the columns of a single key are views, which use no memory
    repeated = np.broadcast_to(keys[:, None], (*shape, 2)).reshape(-1, 2)
    counters = np.broadcast_to(np.arange(count, dtype=np.uint32), shape).reshape(-1)
    pieces = [slice(start, start + TOGETHER) for start in range(0, counters.size, TOGETHER)]
    drawn = [in_batches(program, repeated[piece], counters[piece], batch=TOGETHER) for piece in pieces]
    return np.concatenate(drawn).reshape(shape)


@jax.jit
def _normal(keys: UInt[Array, "n 2"], counters: UInt[Array, " n"]) -> Float[Array, " n"]:
    return np.sqrt(2) * erfinv(_uniform(keys, counters))


@jax.jit
def _laplace(keys: UInt[Array, "n 2"], counters: UInt[Array, " n"]) -> Float[Array, " n"]:
    uniform = _uniform(keys, counters)
    return jnp.sign(uniform) * jnp.log1p(-jnp.abs(uniform))


def _uniform(keys: UInt[Array, "n 2"], counters: UInt[Array, " n"]) -> Float[Array, " n"]:
    """Return numbers on (-1, 1) with 52 random bits, as `jax.random.uniform` makes them."""
    wide = jnp.stack([jnp.zeros_like(counters), counters], axis=1)
    high, low = jax.vmap(threefry_2x32)((keys[:, 0], keys[:, 1]), wide).T.astype(jnp.uint64)
    bits = (high << 32 | low) >> 12 | np.float64(1).view(np.uint64)
    smallest = np.nextafter(-1.0, 0.0)
    return jnp.maximum(2 * (jax.lax.bitcast_convert_type(bits, jnp.float64) - 1) + smallest, smallest)
