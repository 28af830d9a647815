"""Checks of input, for all public functions. Each error names the argument, the rule, its reason and the value."""

import functools
import inspect
import operator
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, ParamSpec, TypeVar, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.core import Tracer
from jaxtyping import AbstractArray, Array, Float

from lib._types import AnyArray, Truth

P = ParamSpec("P")
R = TypeVar("R")


def public(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that accepts lists as arrays, refuses complex numbers and works with strict settings of JAX.

    JAX refuses lists, because converting them inside a traced function is slow; here they are converted once. Arrays
    pass unchanged. Only arguments that are annotated as real arrays are converted and checked. With
    `jax_numpy_dtype_promotion="strict"` or `jax_numpy_rank_promotion="raise"` the function computes as by default,
    because these settings are for the code of the user.

    Args:
      function: a public function or method of `lib`, or a private one that takes arguments of the same kinds.

    Returns:
      The function, with the same name, signature and docstring.
    """
    parameters = inspect.signature(function).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]
    real = {parameter.name for parameter in parameters if _is_real_array(parameter.annotation)}

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> R:
        owner = function.__name__
        named = dict(zip(names, args, strict=False)) | kwargs
        changed = {name: _real(owner, name, value) for name, value in named.items() if name in real}
        args = tuple(changed.get(name, value) for name, value in zip(names, args, strict=False)) + args[len(names) :]
        kwargs = {name: changed.get(name, value) for name, value in kwargs.items()}
        with _default_promotion():
            return function(*args, **kwargs)

    marked: Any = checked
    marked.is_public = True
    return checked


def _is_real_array(annotation: Any) -> bool:
    """Return whether an annotation allows arrays, and none of complex numbers."""
    kinds = [kind for kind in (annotation, *get_args(annotation)) if inspect.isclass(kind)]
    arrays = [kind for kind in kinds if issubclass(kind, AbstractArray)]
    complex_allowed = any("complex" in str(dtype) for kind in arrays for dtype in getattr(kind, "dtypes", ["complex"]))
    return bool(arrays) and not complex_allowed


def _real(owner: str, name: str, value: Any) -> Any:
    """Return `value`, as an array if it is a list or a tuple.

    Raises:
      ValueError: if it is complex.
    """
    if isinstance(value, list | tuple):
        value = jnp.asarray(value)
    require_real(f"`{owner}({name}=...)`", value)
    return value


def require_real(what: str, value: Any) -> None:
    """Raise `ValueError` if `value` is a complex number or an array of them.

    Args:
      what: the argument in the message.
      value: a number or an array.

    Raises:
      ValueError: if `value` is complex.
    """
    dtype = value.dtype if hasattr(value, "dtype") else np.complex128 if isinstance(value, complex) else np.float64
    if jnp.issubdtype(dtype, jnp.complexfloating):
        raise ValueError(f"{what} must be real: the imaginary part would be lost. Got the type {dtype}.")


def _default_promotion() -> ExitStack:
    """Return a context in which JAX promotes types and ranks as by default; it changes no setting that is default."""
    context = ExitStack()
    settings: Any = jax.config
    if settings.jax_numpy_dtype_promotion != "standard":
        context.enter_context(jax.numpy_dtype_promotion("standard"))
    if settings.jax_numpy_rank_promotion != "allow":
        context.enter_context(jax.numpy_rank_promotion("allow"))
    return context


def as_array(value: Any, dtype: Any = None) -> Array:
    """Return `jnp.asarray(value, dtype)`, for numbers and NumPy's arrays without compiling.

    JAX compiles a program for each shape of NumPy's arrays, unless their type is given. Then it may share their memory,
    hence the copy. It compiles one for a Python number, too, unless that is put on the device.

    Args:
      value: a number or an array.
      dtype: the type of the result; JAX's type of `value` by default.

    Returns:
      The array, of the same shape.
    """
    if isinstance(value, int | float) and dtype is None:
        return jax.device_put(value)
    if not isinstance(value, np.ndarray | np.generic):
        return jnp.asarray(value, dtype)
    dtype = jnp.result_type(value if dtype is None else dtype)
    return jnp.asarray(np.array(value, dtype), dtype)


def as_float(value: npt.ArrayLike | float | int) -> Float[Array, "..."]:
    """Return `value` as a floating-point array in JAX's current precision; the field converter of `lib`'s pytrees.

    Args:
      value: a number or an array. Floating-point arrays keep their precision.

    Returns:
      The array, of the same shape.

    Raises:
      ValueError: if it is complex.
    """
    if isinstance(value, int | np.integer | np.ndarray) and np.asarray(value).dtype.kind in "biu":
        value = np.asarray(value, jnp.result_type(float))  # by NumPy, which compiles nothing
    array = as_array(value)
    require_real("An array of real numbers", array)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def is_concrete(*values: npt.ArrayLike | float | int) -> bool:
    """Return whether all values are known now, and not traced by `jit`, `vmap` or `grad`.

    Args:
      *values: numbers or arrays.

    Returns:
      True if none is a tracer.
    """
    return not any(isinstance(value, Tracer) for value in values)


def require_finite(owner: str, name: str, value: Float[AnyArray, "..."], reason: str) -> None:
    """Raise `ValueError` if a concrete `value` has a NaN or an infinity. Traced values pass unchecked.

    Args:
      owner: name of the function or class in the message.
      name: name of the argument in the message.
      value: the argument.
      reason: why the rule holds, a sentence.

    Raises:
      ValueError: if an entry is not finite.
    """
    if is_concrete(value) and not np.isfinite(np.asarray(value)).all():
        bad = int(np.size(value) - np.isfinite(np.asarray(value)).sum())
        raise ValueError(
            f"`{owner}({name}=...)` must be finite: {reason} Got {bad} NaN or infinite of {np.size(value)} entries."
        )


def require_count(owner: str, name: str, value: int, reason: str) -> int:
    """Return `value` as a Python integer.

    Args:
      owner: name of the function or class in the message.
      name: name of the argument in the message.
      value: the argument, a whole number ≥ 1.
      reason: why the rule holds, a sentence.

    Returns:
      The integer.

    Raises:
      ValueError: if `value` is not a whole number ≥ 1.
    """
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"`{owner}({name}=...)` must be a whole number ≥ 1: {reason} Got {value!r}.")
    return count


def require_positive(owner: str, name: str, value: Float[Array, "..."], reason: str) -> None:
    """Raise `ValueError` unless every entry of a concrete `value` is finite and positive. Traced values pass unchecked.

    Args:
      owner: name of the function or class in the message.
      name: name of the argument in the message.
      value: the argument.
      reason: why the rule holds, a sentence.

    Raises:
      ValueError: if an entry is not finite and positive.
    """
    require_finite(owner, name, value, reason)
    if is_concrete(value) and not (np.asarray(value) > 0).all():
        raise ValueError(f"`{owner}({name}=...)` must be positive: {reason} Got {np.asarray(value)}.")


def require_covariance(owner: str, name: str, cov: Float[Array, "..."]) -> None:
    """Raise `ValueError` unless `cov` is a covariance, or a stack of covariances; they may be singular.

    The asymmetry and the negative eigenvalues may not exceed `d * eps(dtype) * largest eigenvalue`. If the value is
    traced, only its shape is checked.

    Args:
      owner: name of the function or class in the message.
      name: name of the argument in the message.
      cov: the argument, shape (d, d) or (..., d, d), d ≥ 1.

    Raises:
      ValueError: if a matrix is not square, finite, symmetric and positive semidefinite.
    """
    if cov.ndim < 2 or cov.shape[-1] != cov.shape[-2] or cov.shape[-1] == 0:
        raise ValueError(
            f"`{owner}({name}=...)` must be a square matrix of size d ≥ 1, because a covariance is. "
            f"Got shape {cov.shape}."
        )
    require_finite(owner, name, cov, "it is a covariance.")
    if not is_concrete(cov):
        return
    matrix = np.asarray(cov)
    transposed = np.swapaxes(matrix, -1, -2)
    eigenvalues = np.linalg.eigvalsh(0.5 * (matrix.astype(np.float64) + transposed))
    tolerance = matrix.shape[-1] * jnp.finfo(matrix.dtype).eps * np.abs(eigenvalues).max(axis=-1)
    asymmetry = np.abs(matrix - transposed).max(axis=(-1, -2))
    if (asymmetry > tolerance).any():
        raise ValueError(
            f"`{owner}({name}=...)` must be symmetric, because a covariance is: cov[i, j] = Cov(z_i, z_j). "
            f"Got |cov - cov.T| up to {asymmetry.max():.3g}."
        )
    if (eigenvalues.min(axis=-1) < -tolerance).any():
        raise ValueError(
            f"`{owner}({name}=...)` must have no negative eigenvalue, because ⟨ξ, cov ξ⟩ is a variance. "
            f"Got a smallest eigenvalue of {eigenvalues.min():.3g}."
        )


def require_now_or_then(
    value: Float[AnyArray, "..."], holds: Truth, rule: str, what_came: Callable[[], str]
) -> Float[AnyArray, "..."]:
    """Return `value`, guarded by a condition, which is checked at once if it is concrete, else at run time.

    Args:
      value: the array to return.
      holds: the condition, shape ().
      rule: the rule and its reason, a sentence.
      what_came: returns a sentence with the offending values; called only for a concrete condition.

    Returns:
      `value`.

    Raises:
      ValueError: if the condition is concrete and false. Inside `jit` a false condition is a runtime error.
    """
    if is_concrete(holds):
        if not holds:
            raise ValueError(f"{rule} {what_came()}")
        return value
    return eqx.error_if(value, jnp.logical_not(holds), rule)


def require_float64(owner: str, value: Float[AnyArray, "..."]) -> None:
    """Raise `ValueError` unless `value` has double precision.

    Args:
      owner: name of the function in the message.
      value: an array in JAX's current precision.

    Raises:
      ValueError: if it is not float64.
    """
    if value.dtype != jnp.float64:
        raise ValueError(
            f"`{owner}` needs double precision, because exact theory in single precision is not exact: wrap the call "
            f"in `with jax.enable_x64(True):`. Got {value.dtype}."
        )
