"""A table put to the test: what it says between its nodes, and what the library says there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.interpolate import interpn

from chapters.laboratory.grids import Grid


class Keys(NamedTuple):
    """A key for the random settings of each table."""

    plane: PRNGKeyArray
    needle: PRNGKeyArray
    valley: PRNGKeyArray
    cloud: PRNGKeyArray


def keys(seed: int) -> Keys:
    """All from one integer."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


@dataclass(frozen=True)
class Trial:
    """A table, and at random settings what the library gives: columns of the names that the table has."""

    grid: Grid
    places: tuple[Float[np.ndarray, " n"], ...]
    exact: Mapping[str, Float[np.ndarray, " n"]]

    @property
    def settings(self) -> int:
        """How many settings were tried."""
        return len(self.places[0])

    def read_straight(self, column: str, *at: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """A column by straight lines between neighbouring nodes of the table."""
        nodes = tuple(axis.nodes for axis in self.grid.axes)
        return interpn(nodes, self.grid.columns[column], np.stack(np.broadcast_arrays(*at), axis=-1))

    def error(self, *columns: str) -> float:
        """The largest error of these columns, as the page reads them."""
        return max(float(np.max(np.abs(self.grid.read(one, *self.places) - self.exact[one]))) for one in columns)

    def error_of_lines(self, *columns: str) -> float:
        """The same if nodes were joined by straight lines."""
        lines = {one: self.read_straight(one, *self.places) for one in columns}
        return max(float(np.max(np.abs(lines[one] - self.exact[one]))) for one in columns)


def uniform(key: PRNGKeyArray, count: int, *ranges: tuple[float, float]) -> list[Float[Array, " n"]]:
    """Random settings: independent and uniform, an array a range."""
    drawn = jr.uniform(key, (len(ranges), count))
    return [low + (high - low) * one for (low, high), one in zip(ranges, drawn, strict=True)]
