"""Random keys by name, so that a new use of randomness changes no other, and standard normals at a low cost.

`normal` computes those of `jax.random.normal` by NumPy if the key is known, as do the helpers for keys and uniform
numbers. `fast_normal` is for trainings on fresh prompts, which spend most of their time on a CPU on normals. It draws
real ones from JAX's random bits, and complex ones from a counter, so that XLA can draw them inside a longer loop.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import scipy.special
from jaxtyping import Array, Complex, Float, Int, PRNGKeyArray, UInt

from lib._checks import as_array, is_concrete, public
from lib._namespace import namespace
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
    key = _key(seed)
    return {name: _fold_in_name(key, name) for name in names}


def _key(seed: int | Int[Array, ""]) -> PRNGKeyArray:
    """Return `jax.random.key(seed)`, without compiling for seeds of 31 bits and JAX's default settings."""
    settings: Any = jax.config
    default = settings.jax_default_prng_impl == "threefry2x32" and settings.jax_random_seed_offset == 0
    if isinstance(seed, int) and 0 <= seed < 2**31 and default:
        return _key_of(np.array([0, seed], np.uint32))
    return jr.key(seed)


def _fold_in_name(key: PRNGKeyArray, name: str) -> PRNGKeyArray:
    """Fold the first 64 bits of the name's SHA-256 digest into a key, in two words of 32 bits."""
    digest = hashlib.sha256(name.encode()).digest()
    for start in (0, 4):
        key = _fold_in(key, int.from_bytes(digest[start : start + 4], "big"))
    return key


def _known_words(key: PRNGKeyArray) -> UInt[np.ndarray, "2"] | None:
    """Return the two words of a known key of JAX's default kind, and None for another key."""
    words = jr.key_data(key)
    default = jax.threefry_partitionable.value and str(jr.key_impl(key)) == "threefry2x32"
    return np.asarray(words) if default and is_concrete(words) else None


def _fold_in(key: PRNGKeyArray, number: int) -> PRNGKeyArray:
    """Return `jax.random.fold_in(key, number)`, by NumPy if the key is known."""
    if (words := _known_words(key)) is None:
        return jr.fold_in(key, number)
    return _key_of(np.concatenate(_words_at(words, np.array([number], np.uint64))))


def _split(key: PRNGKeyArray, number: int = 2) -> list[PRNGKeyArray]:
    """Return the keys of `jax.random.split(key, number)`, by NumPy if the key is known."""
    if (words := _known_words(key)) is None:
        return list(jr.split(key, number))
    return [_key_of(pair) for pair in np.stack(_words_at(words, np.arange(number, dtype=np.uint64)), axis=1)]


def _key_of(words: UInt[np.ndarray, "2"]) -> PRNGKeyArray:
    return jr.wrap_key_data(as_array(words), impl="threefry2x32")


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
    return _drawn(key, shape, dtype, jr.normal, _normals_of)


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...] = (), dtype: Any = float) -> Float[AnyArray, "..."]:
    """Return `jax.random.uniform(key, shape, dtype)`, computed by NumPy as `normal` is."""
    return _drawn(key, shape, dtype, jr.uniform, lambda fractions: fractions)


def _drawn(
    key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any, by_jax: Callable, by_numpy: Callable
) -> Float[AnyArray, "..."]:
    """Return `by_numpy` of fractions with 52 random bits, or `by_jax(key, shape, dtype)` where NumPy does not serve."""
    words, count = _known_words(key), math.prod(shape)
    if words is None or jnp.result_type(dtype) != np.float64:
        return by_jax(key, shape, dtype)
    blocks = np.split(np.arange(count, dtype=np.uint64), range(_BLOCK, count, _BLOCK))
    return np.concatenate([by_numpy(_fractions_at(words, block)) for block in blocks]).reshape(shape)


def _fractions_at(key: UInt[np.ndarray, "2"], counts: UInt[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    high, low = _words_at(key, counts)
    return ((high.astype(np.uint64) << 32 | low) >> 12) * 2.0**-52


def _normals_of(fractions: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    smallest = np.nextafter(-1.0, 0.0)
    return math.sqrt(2) * scipy.special.erfinv(np.maximum(2 * fractions + smallest, smallest))


def _words_at(key: UInt[np.ndarray, "2"], counts: UInt[np.ndarray, " n"]) -> tuple[Any, Any]:
    """Return the two random words of each count of 64 bits."""
    return _threefry(key, (counts >> 32).astype(np.uint32), counts.astype(np.uint32))


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
    bits = _bits(key, (2, -(-count // 2)))
    normals = _box_muller(*bits, dtype=jnp.result_type(dtype))
    return as_array(namespace(bits).concatenate(normals)[:count].reshape(shape))


def _bits(key: PRNGKeyArray, shape: tuple[int, ...]) -> UInt[AnyArray, "..."]:
    """Return `jax.random.bits(key, shape, uint32)`, by NumPy if the key is known."""
    if (words := _known_words(key)) is None:
        return jr.bits(key, shape, jnp.uint32)
    high, low = _words_at(words, np.arange(math.prod(shape), dtype=np.uint64))
    return (high ^ low).reshape(shape)


def _box_muller(
    radius_bits: UInt[AnyArray, "..."], angle_bits: UInt[AnyArray, "..."], *, dtype: Any, terms: int = 9
) -> tuple[Float[AnyArray, "..."], Float[AnyArray, "..."]]:
    """Return two independent standard normals from 64 random bits."""
    xp = namespace(radius_bits, angle_bits)
    uniform = (radius_bits >> 1).astype(np.int32).astype(dtype) * 2.0**-31 + 2.0**-32
    radius = xp.sqrt(-2 * xp.log(uniform))
    angle = ((angle_bits >> 2).astype(np.int32).astype(dtype) * 2.0**-30 + (2.0**-31 - 0.5)) * (math.pi / 2)
    square = angle**2
    cosine = xp.polyval(xp.asarray(_COSINE[-terms:], dtype), square)
    sine = angle * xp.polyval(xp.asarray(_SINE[-terms:], dtype), square)
    swap, sign = angle_bits & 1 == 1, (angle_bits & 2).astype(np.int32).astype(dtype) - 1
    signed = sign * radius
    return signed * xp.where(swap, sine, cosine), signed * xp.where(swap, cosine, sine)


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
