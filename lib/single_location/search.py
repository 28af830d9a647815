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

    A lattice finds the valley; then `rounds` of five points move to the lowest of them, and halve their distance where
    it is inside. NaN counts as high. `together` evaluates points at once, not one by one.
    """
    values = jax.vmap(function) if together else lambda points: jax.lax.map(function, points)

    def best(points):
        found = values(points)
        index = jnp.argmin(jnp.where(jnp.isnan(found), jnp.inf, found))
        return index, points[index], found[index]

    def zoom(_, state):
        x, step, _ = state
        index, x, value = best(jnp.clip(x + step * jnp.arange(-2, 3), low, high))
        return x, jnp.where((index == 0) | (index == 4), step, 0.5 * step), value

    _, x, value = best(jnp.linspace(low, high, lattice))
    x, _, value = jax.lax.fori_loop(0, rounds, zoom, (x, (high - low) / (2 * (lattice - 1)), value))
    return x, value
