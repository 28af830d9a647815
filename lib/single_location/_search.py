"""Minimum of a function of one variable that may have several local minima, without derivatives."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy.optimize

from lib._namespace import namespace
from lib._types import Scalar


def minimise_scalar(
    function: Callable,
    low: Scalar,
    high: Scalar,
    *,
    lattice: int,
    rounds: int,
    vectorised: bool = True,
    broadcasts: bool = False,
) -> tuple[Scalar, Scalar]:
    """Return the place and the value of the lowest of the tried values of `function` on [low, high].

    JAX tries all points of a round at once if `vectorised`. NumPy tries all points of the lattice at once if the
    function `broadcasts` over a first axis, and then uses Brent's method, to the distance of the last round.
    """
    xp = namespace(low, high)
    values = jax.vmap(function) if vectorised else lambda points: jax.lax.map(function, points)
    if xp is np:
        values = (lambda points: function(points[:, None])) if broadcasts else _each(function)

    def best_of(points, candidates):
        index = xp.argmin(xp.where(xp.isnan(candidates), xp.inf, candidates))
        return points[index], candidates[index]

    def zoom(number, state):
        x, value = state
        sides = xp.clip(x + 0.5 ** (number + 1.0) * spacing * xp.asarray([-1.0, 1.0]), low, high)
        return best_of(xp.append(x, sides), xp.append(value, values(sides)))

    spacing, points = (high - low) / (lattice - 1), xp.linspace(low, high, lattice)
    candidates = values(points)
    state = best_of(points, candidates)
    if xp is np:
        found = between_neighbours(function, points, candidates, accuracy=0.5**rounds * spacing)
        return found if found[1] < state[1] else state
    return jax.lax.fori_loop(0, rounds, zoom, state)


def between_neighbours(function: Callable, points: Any, values: Any, *, accuracy: Any) -> tuple[float, float]:
    """Return the place and the value of a minimum of `function` between the neighbours of the point of least value.

    It uses Brent's method, for known numbers. `values` are those of the function, or of an approximation, at increasing
    `points`; `accuracy` is that of the place.
    """
    lowest = int(np.argmin(np.where(np.isnan(values), np.inf, values)))
    bounds, options = (points[max(lowest - 1, 0)], points[min(lowest + 1, len(points) - 1)]), {"xatol": accuracy}
    found: Any = scipy.optimize.minimize_scalar(function, bounds=bounds, method="bounded", options=options)
    return found.x, found.fun


def _each(function: Callable) -> Callable:
    """Return `function` of every point of an array, as an array of NumPy."""
    return lambda points: np.array([function(point) for point in points])
