"""Random keys by name, so that a new use of randomness changes no other, and standard normals at a low cost.

`normal` computes those of `jax.random.normal` by NumPy if the key is known. `fast_normal` is for trainings on fresh
prompts, which spend most of their time on a CPU on normals. It draws real ones from JAX's random bits, and complex ones
from a counter, so that XLA can draw them inside a longer loop.
"""

import hashlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.special
from jaxtyping import Array, Complex, Float, Int, PRNGKeyArray, UInt

from lib._checks import is_concrete, public
from lib._types import AnyArray

__all__ = ["fast_normal", "named_keys", "normal"]

# Numbers that NumPy draws at once: they fit a processor's cache.
_BLOCK = 2**14

# Taylor coefficients of cosine and sine, and how many of them an eighth of the circle needs, by precision.
_TERMS = np.arange(8, -1, -1)
_COSINE = (-1.0) ** _TERMS / np.array([math.factorial(2 * n) for n in _TERMS])
_SINE = (-1.0) ** _TERMS / np.array([math.factorial(2 * n + 1) for n in _TERMS])
_TAYLOR_TERMS = {"float32": 5, "float64": 9}


@public
def named_keys(seed: int | Int[Array, ""], *names: str) -> dict[str, PRNGKeyArray]:
    """Return one random key per name.

    A key depends on the seed and its own name only: adding, removing or reordering names changes no other key.

    Args:
      seed: the seed, an integer of shape ().
      names: the names, which must differ.

    Returns:
      The keys by name, in the order of `names`.

    Raises:
      TypeError: if a name is not a string.
      ValueError: if a name occurs twice.

    Source: `jax.random.fold_in`.

    Transformations: jit, vmap.
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"`named_keys(seed, *names)` takes names that are strings. Got {name!r}.")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            "`named_keys(seed, *names)` needs different names, because equal names would share their randomness. "
            f"Got twice: {', '.join(map(repr, repeated))}."
        )
    key = jr.key(seed)
    return {name: _fold_in_name(key, name) for name in names}


def _fold_in_name(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """Fold the first 64 bits of the name's SHA-256 digest into a key, in two words of 32 bits."""
    digest = hashlib.sha256(name.encode()).digest()
    for start in (0, 4):
        key = jr.fold_in(key, int.from_bytes(digest[start : start + 4], "big"))
    return key


@public
def normal(key: PRNGKeyArray, shape: tuple[int, ...] = (), dtype: Any = float) -> Float[AnyArray, "..."]:
    """Return `jax.random.normal(key, shape, dtype)`, computed by NumPy without compiling if the key is known.

    The random bits are those of JAX, and the normals are equal up to rounding. XLA takes most of a second to compile
    the normals of one shape. NumPy takes 40 ns for each normal, about twice as long as a compiled program.

    Args:
      key: JAX random key.
      shape: shape of the result.
      dtype: the type of the normals.

    Returns:
      The normals: an array of NumPy for a known key of JAX's default kind and `float64`, otherwise one of JAX. Inside
      `jit` every key counts as traced, so that normals never become constants of a program.

    Source: [SMDS11] and `jax.random`. Transformations: jit, vmap.
    """
    words, count = jr.key_data(key), math.prod(shape)
    default = jax.threefry_partitionable.value and str(jr.key_impl(key)) == "threefry2x32"
    if not (is_concrete(words) and default and jnp.result_type(dtype) == np.float64):
        return jr.normal(key, shape, dtype)
    blocks = np.split(np.arange(count, dtype=np.uint64), range(_BLOCK, count, _BLOCK))
    return np.concatenate([_normals_at(np.asarray(words), block) for block in blocks]).reshape(shape)


def _normals_at(key: UInt[np.ndarray, "2"], counts: UInt[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the standard normals of these counts, each from a uniform number on [-1, 1] with 52 random bits."""
    high, low = _threefry(key, (counts >> 32).astype(np.uint32), counts.astype(np.uint32))
    fraction = ((high.astype(np.uint64) << 32 | low) >> 12) * 2.0**-52
    smallest = np.nextafter(-1.0, 0.0)
    return math.sqrt(2) * scipy.special.erfinv(np.maximum(2 * fraction + smallest, smallest))


@public
def fast_normal(
    key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any = float, *, stream: int = 0
) -> Float[Array, "..."] | Complex[Array, "..."]:
    """Return standard normals by Box and Muller, at two thirds of the cost of `jax.random.normal`.

    Each is made of 32 random bits. Values end at 6.7 standard deviations; cosine and sine are Taylor polynomials on an
    eighth of the circle, turned by two of the bits, because XLA's own cost more than all the rest. XLA computes two
    arrays of a common origin twice, so pairs are complex numbers.

    Args:
      key: JAX random key.
      shape: shape of the result.
      dtype: `float32` or `float64`; or `complex64` or `complex128` for pairs.
      stream: number of the stream of pairs; streams of one key are independent. Real normals have one stream.

    Returns:
      The normals; for a complex type pairs g + ih of independent ones.

    Transformations: jit, vmap.
    """
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return _normal_pairs(key, stream, shape, jnp.finfo(jnp.result_type(dtype)).dtype)
    count = math.prod(shape)
    radius_bits, angle_bits = jr.bits(key, (2, -(-count // 2)), jnp.uint32)
    return jnp.concatenate(_box_muller(radius_bits, angle_bits, dtype=dtype))[:count].reshape(shape)


def _box_muller(
    radius_bits: UInt[Array, "..."], angle_bits: UInt[Array, "..."], *, dtype: Any, terms: int = 9
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Return two independent standard normals from 64 random bits."""
    uniform = (radius_bits >> 1).astype(jnp.int32).astype(dtype) * 2.0**-31 + 2.0**-32
    radius = jnp.sqrt(-2 * jnp.log(uniform))
    angle = ((angle_bits >> 2).astype(jnp.int32).astype(dtype) * 2.0**-30 + (2.0**-31 - 0.5)) * (math.pi / 2)
    square = angle**2
    cosine = jnp.polyval(jnp.asarray(_COSINE[-terms:], dtype), square)
    sine = angle * jnp.polyval(jnp.asarray(_SINE[-terms:], dtype), square)
    swap, sign = angle_bits & 1 == 1, (angle_bits & 2).astype(jnp.int32).astype(dtype) - 1
    signed = sign * radius
    return signed * jnp.where(swap, sine, cosine), signed * jnp.where(swap, cosine, sine)


def _normal_pairs(key: PRNGKeyArray, stream: int, shape: tuple[int, ...], dtype: np.dtype) -> Complex[Array, "..."]:
    """Return pairs g + ih, each from one block of 64 random bits."""
    strides = np.cumprod((1, *shape[:0:-1]))[::-1]
    count = jnp.zeros(shape, jnp.uint32)
    for axis, step in enumerate(strides):
        count = count + jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * np.uint32(step)
    words = _threefry(jr.key_data(key), jnp.full_like(count, stream), count)
    return jax.lax.complex(*_box_muller(*words, dtype=dtype, terms=_TAYLOR_TERMS[dtype.name]))


def _threefry(key: UInt[AnyArray, "2"], high: UInt[AnyArray, "..."], low: UInt[AnyArray, "..."]) -> tuple[Any, Any]:
    """Return two random words for each count `high·2³² + low`: the twenty rounds of Threefry-2x32 [SMDS11]."""
    first, second = key[:1], key[1:]
    schedule = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    left, right = high + schedule[0], low + schedule[1]
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            left += right
            right = (right << np.uint32(turn)) | (right >> np.uint32(32 - turn))
            right ^= left
        left += schedule[(group + 1) % 3]
        right += schedule[(group + 2) % 3] + np.uint32(group + 1)
    return left, right
