"""One source for NumPy and JAX: a formula computes with the library whose arrays it is given.

XLA takes seconds to compile a quadrature, and NumPy compiles nothing. So the entry points pass NumPy arrays to the
formulas if the arguments are known, and arrays of JAX if they are traced, or if there are so many known values that
compiling pays. The functions here choose between the two libraries, or hide that their names differ.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Hashable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from lib._checks import as_array, as_float, is_concrete, require_float64
from lib._types import Scalars

# NumPy computes about this many values of a quadrature in the time in which XLA compiles it. The first values of a
# process are NumPy's and the next ones XLA's, so that neither a single call nor many small ones take twice the least
# possible time; the two agree up to rounding.
MOST_IN_NUMPY = 1000
_computed: Counter = Counter()


def namespace(*values: Any) -> ModuleType:
    """Return `jax.numpy` if one of the values is an array of JAX, traced or not; otherwise NumPy."""
    return jnp if any(isinstance(value, jax.Array) for value in values) else np


def few(owner: Hashable, *values: Any, most: int = MOST_IN_NUMPY) -> bool:
    """Return whether the values are known, and few enough for NumPy, counting those of earlier calls of `owner`."""
    if not is_concrete(*values):
        return False
    count = math.prod(np.broadcast_shapes(*(np.shape(value) for value in values)))
    if count == 0 or _computed[owner] + count > most:
        return False
    _computed[owner] += count
    return True


def known(value: Any) -> Any:
    """Return an array of NumPy in place of one of JAX that is not traced; arithmetic with it compiles nothing."""
    return np.asarray(value) if is_concrete(value) else value


def product(first: Any, second: Any) -> Any:
    """Return the matrix product in the type that JAX gives it, an array of NumPy if both factors are known."""
    first, second = known(first), known(second)
    return (first @ second).astype(jnp.result_type(first, second))


def exact(owner: str, *values: Scalars) -> tuple[Any, ...]:
    """Return the values as arrays in double precision, and as NumPy arrays if they are not traced."""
    arrays = tuple(known(as_float(value)) for value in values)
    for array in arrays:
        require_float64(owner, array)
    return arrays


def in_numpy(function: Callable, *trees: Any) -> Any:
    """Return the values of `function` at every entry of trees whose leaves broadcast, computed by NumPy.

    A value may be a tree, too. The results are arrays of JAX, one for each leaf of a value.
    """
    leaves, structure = jax.tree.flatten(trees)
    columns = np.broadcast_arrays(*leaves)
    # without entries, one value is computed, because it has the structure of the result
    entries = list(zip(*(column.ravel() for column in columns), strict=True)) or [(1.0,) * len(columns)]
    with np.errstate(all="ignore"):
        rows = [function(*jax.tree.unflatten(structure, entry)) for entry in entries]

    def stack(*parts: Any) -> Float[Array, "..."]:
        return as_array(np.reshape(parts[: columns[0].size], columns[0].shape))

    return jax.tree.map(stack, *rows)


def with_slopes(function: Callable, jacobian: Callable) -> Callable:
    """Return a function of k numbers whose results are the n values of `function` and their derivatives, (n, k)."""

    def both(*args: Any) -> Any:
        def stacked(args: Any) -> Any:
            values = jnp.stack(function(*args))
            return values, values

        slopes, values = jacobian(stacked, has_aux=True)(jnp.stack(args))
        return values, slopes

    return both


def one_at_a_time(function: Callable, slopes: Callable) -> Callable:
    """Return `function` of traced numbers with the first derivatives of `slopes`, which computes the values with them.

    Reverse mode then stores a few numbers per entry instead of all nodes of a quadrature. Under `vmap` the entries are
    computed one after another, because the nodes of one entry fit into a processor's cache.
    """
    alone, both = (jax.custom_batching.sequential_vmap(each) for each in (function, slopes))

    @jax.custom_jvp
    def values(*args: Any) -> Any:
        return alone(*args)

    @values.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        values, slopes = both(*primals)
        return tuple(values), tuple(slopes @ jnp.stack(tangents))

    return values


def jitted(*, static: tuple[int, ...] = ()) -> Callable[[Callable], Callable]:
    """Return a decorator that compiles a function for arrays of JAX, and leaves it as it is for those of NumPy.

    Args:
      static: positions of the arguments that are not arrays.
    """

    def decorate(function: Callable) -> Callable:
        compiled = jax.jit(function, static_argnums=static)

        @functools.wraps(function)
        def either(*args: Any) -> Any:
            return (function if namespace(*jax.tree.leaves(args)) is np else compiled)(*args)

        return either

    return decorate


def constant(*values: Any) -> tuple[Any, ...]:
    """Return the values without derivatives."""
    return tuple(jax.lax.stop_gradient(value) if isinstance(value, jax.Array) else value for value in values)


def softplus(x: Any) -> Any:
    """Return `log(1 + e^x)`."""
    return jax.nn.softplus(x) if isinstance(x, jax.Array) else np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x: Any) -> Any:
    """Return `1/(1 + e^{-x})`."""
    return jax.nn.sigmoid(x) if isinstance(x, jax.Array) else scipy.special.expit(x)


def softmax(x: Any, axis: int = -1) -> Any:
    """Return the exponentials of x over their sum along an axis."""
    return jax.nn.softmax(x, axis) if isinstance(x, jax.Array) else scipy.special.softmax(x, axis)


def log_ndtr(x: Any) -> Any:
    """Return the logarithm of the standard normal distribution function."""
    return jax.scipy.special.log_ndtr(x) if isinstance(x, jax.Array) else scipy.special.log_ndtr(x)


def erfc(x: Any) -> Any:
    """Return `1 - erf(x)`."""
    return jax.scipy.special.erfc(x) if isinstance(x, jax.Array) else scipy.special.erfc(x)


def choose(first: Any, function: Callable, other: Callable, *args: Any) -> Any:
    """Return `function(*args)` if `first` holds, and `other(*args)` otherwise."""
    if namespace(first, *jax.tree.leaves(args)) is np:
        return (function if first else other)(*args)
    return jax.lax.cond(first, function, other, *args)


def log_softmax(x: Any) -> Any:
    """Return x minus the logarithm of the sum of its exponentials, along the last axis."""
    if isinstance(x, jax.Array):
        return jax.nn.log_softmax(x)
    shifted = x - np.max(x, axis=-1, keepdims=True)
    return shifted - logsumexp(shifted, axis=-1)[..., None]


def logsumexp(x: Any, axis: int | None = None) -> Any:
    """Return the logarithm of the sum of the exponentials."""
    if isinstance(x, jax.Array):
        return jax.scipy.special.logsumexp(x, axis=axis)
    largest = np.max(x, axis=axis, keepdims=True)
    largest = np.where(np.isfinite(largest), largest, 0.0)
    total = np.log(np.sum(np.exp(x - largest), axis=axis))
    return total + largest.reshape(np.shape(total))
