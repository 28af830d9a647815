"""Turning bad input into sentences: which argument, which rule, why, and what came."""

import operator
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.core import Tracer
from jaxtyping import Array, Bool, Float


def as_float(value: npt.ArrayLike | float | int) -> Float[Array, "..."]:
    """`value` as a floating-point array in JAX's current precision; field converter of every pytree here."""
    array = jnp.asarray(value)
    return array if jnp.issubdtype(array.dtype, jnp.floating) else array.astype(float)


def is_concrete(*values: npt.ArrayLike | float | int) -> bool:
    """Whether all values can be looked at now, rather than being traced by `jit`, `vmap` or `grad`."""
    return not any(isinstance(value, Tracer) for value in values)


def require_finite(owner: str, name: str, value: Float[Array, "..."], reason: str) -> None:
    """Raise `ValueError` if a concrete `value` holds a NaN or an infinity. Traced values pass unseen."""
    if is_concrete(value) and not np.isfinite(np.asarray(value)).all():
        bad = int(np.size(value) - np.isfinite(np.asarray(value)).sum())
        raise ValueError(
            f"`{owner}({name}=...)` must be finite: {reason} Got {bad} NaN or infinite of {np.size(value)} entries."
        )


def require_count(owner: str, name: str, value: int, reason: str) -> int:
    """`value` as a Python integer, or `ValueError` unless it is a whole number of at least 1."""
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"`{owner}({name}=...)` must be a whole number ≥ 1: {reason} Got {value!r}.")
    return count


def require_positive(owner: str, name: str, value: Float[Array, "..."], reason: str) -> None:
    """Raise `ValueError` unless every entry of a concrete `value` is finite and positive."""
    require_finite(owner, name, value, reason)
    if is_concrete(value) and not (np.asarray(value) > 0).all():
        raise ValueError(f"`{owner}({name}=...)` must be positive: {reason} Got {np.asarray(value)}.")


def require_covariance(owner: str, name: str, cov: Float[Array, "..."]) -> None:
    """Raise `ValueError` unless `cov` of shape (d, d), or each of a stack, is a covariance. It may be singular.

    Its asymmetry and its negative eigenvalues may not exceed `d * eps(dtype) * largest eigenvalue`. Traced values pass
    unseen.
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
    tolerance = matrix.shape[-1] * np.finfo(matrix.dtype).eps * np.abs(eigenvalues).max(axis=-1)
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
    value: Float[Array, "..."], holds: Bool[Array, ""], rule: str, what_came: Callable[[], str]
) -> Float[Array, "..."]:
    """`value`, guarded: `ValueError` at once where `holds` is concrete, a runtime error from inside `jit`.

    Only the first can show values, so only there is `what_came` asked.
    """
    if is_concrete(holds):
        if not holds:
            raise ValueError(f"{rule} {what_came()}")
        return value
    return eqx.error_if(value, jnp.logical_not(holds), rule)


def require_float64(owner: str, value: Float[Array, "..."]) -> None:
    """Raise `ValueError` unless JAX computes in double precision."""
    if value.dtype != jnp.float64:
        raise ValueError(
            f"`{owner}` needs double precision, because exact theory in single precision is not exact: wrap the call "
            f"in `with jax.enable_x64(True):`. Got {value.dtype}."
        )
