"""Tests of a table: its values between the nodes, compared with those of the library."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.interpolate import interpn

from chapters.laboratory.grids import Grid


@dataclass(frozen=True)
class Trial:
    """A table, random settings, and the values of the library at these settings, with the column names of the table."""

    grid: Grid
    places: tuple[Float[np.ndarray, " n"], ...]
    exact: Mapping[str, Float[np.ndarray, " n"]]

    @property
    def settings(self) -> int:
        """The number of random settings."""
        return len(self.places[0])

    def requires(self, **nodes: int) -> tuple[bool, str]:
        """Return whether the table has at least these numbers of nodes by axis, and why a claim is withheld if not."""
        counts = {axis.name: len(axis.nodes) for axis in self.grid.axes}
        enough = all(counts[name] >= count for name, count in nodes.items())
        return enough, "the table needs at least " + ", ".join(
            f"{count} nodes in {name}" for name, count in nodes.items()
        )

    def read_straight(self, column: str, *at: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Return a column interpolated linearly between neighbouring nodes of the table."""
        nodes = tuple(axis.nodes for axis in self.grid.axes)
        return interpn(nodes, self.grid.columns[column], np.stack(np.broadcast_arrays(*at), axis=-1))

    def error(self, *columns: str) -> float:
        """Return the largest error of these columns with the interpolation of the page."""
        return max(float(np.max(np.abs(self.grid.read(one, *self.places) - self.exact[one]))) for one in columns)

    def error_of_lines(self, *columns: str) -> float:
        """Return the largest error of these columns with linear interpolation."""
        lines = {one: self.read_straight(one, *self.places) for one in columns}
        return max(float(np.max(np.abs(lines[one] - self.exact[one]))) for one in columns)


def uniform(key: PRNGKeyArray, count: int, *ranges: tuple[float, float]) -> list[Float[Array, " n"]]:
    """Return independent uniform random settings, as one array per range."""
    drawn = jr.uniform(key, (len(ranges), count))
    return [low + (high - low) * one for (low, high), one in zip(ranges, drawn, strict=True)]
