"""The lowest value of a function of one variable that may have several minima, without derivatives."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def lowest(
    function: Callable,
    low: float | Float[Array, ""],
    high: float | Float[Array, ""],
    *,
    lattice: int,
    rounds: int,
    together: bool = True,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Where `function(x) -> ()` is least between `low` and `high`, and its value there.

    A lattice finds the valley; then `rounds` of two points, one on each side of the lowest so far and half as far from
    it as the last ones. NaN counts as high. `together` evaluates points at once, not one by one.
    """
    values = jax.vmap(function) if together else lambda points: jax.lax.map(function, points)

    def lowest_of(points, found):
        index = jnp.argmin(jnp.where(jnp.isnan(found), jnp.inf, found))
        return points[index], found[index]

    def zoom(number, state):
        x, value = state
        sides = jnp.clip(x + 0.5 ** (number + 1.0) * spacing * jnp.asarray([-1.0, 1.0]), low, high)
        # of equal ones the first, the one that was there
        return lowest_of(jnp.append(x, sides), jnp.append(value, values(sides)))

    spacing, points = (high - low) / (lattice - 1), jnp.linspace(low, high, lattice)
    return jax.lax.fori_loop(0, rounds, zoom, lowest_of(points, values(points)))
