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
    """Return the place and the value of the lowest of the tried values of `function` on [low, high].

    A lattice finds the lowest valley; then each of the rounds tries two points, one on either side of the lowest
    point so
    far, at half the distance of the last ones. NaN counts as high.

    Args:
      function: a map from shape () to shape ().
      low: the lower end, shape ().
      high: the upper end, shape ().
      lattice: number of points of the lattice, ends included, at least 2.
      rounds: number of halvings of the distance; the place is known to `(high - low)/(lattice - 1)/2^rounds`.
      vectorised: whether points are evaluated at once; one after another is faster on a CPU where a value needs much
        memory.

    Returns:
      The place and the value, each of shape (). The value is never below the minimum.

    Transformations: jit, vmap; the gradient of the value alone is right where the minimum is inside.
    """
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
