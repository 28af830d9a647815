"""Minimum of a function of one variable that may have several local minima, without derivatives."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib._checks import public


@public
def minimise_scalar(
    function: Callable,
    low: float | Float[Array, ""],
    high: float | Float[Array, ""],
    *,
    lattice: int,
    rounds: int,
    vectorised: bool = True,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the place and the value of the lowest of the tried values of `function` on [low, high]."""
    values = jax.vmap(function) if vectorised else lambda points: jax.lax.map(function, points)

    def best_of(points, candidates):
        index = jnp.argmin(jnp.where(jnp.isnan(candidates), jnp.inf, candidates))
        return points[index], candidates[index]

    def zoom(number, state):
        x, value = state
        sides = jnp.clip(x + 0.5 ** (number + 1.0) * spacing * jnp.asarray([-1.0, 1.0]), low, high)
        # of equal ones the first, the one that was there
        return best_of(jnp.append(x, sides), jnp.append(value, values(sides)))

    spacing, points = (high - low) / (lattice - 1), jnp.linspace(low, high, lattice)
    return jax.lax.fori_loop(0, rounds, zoom, best_of(points, values(points)))
