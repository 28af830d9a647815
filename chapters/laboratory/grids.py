"""Interpolated tables: values at Chebyshev nodes, and the polynomial through them.

`page/table.js` interpolates the published table by the same formula, so the errors measured here apply to the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

Values = Float[np.ndarray, "..."]
DIGITS = 6


@dataclass(frozen=True)
class Axis:
    """The name of one coordinate of a grid, and its nodes."""

    name: str
    nodes: Float[np.ndarray, " n"]

    @classmethod
    def between(cls, name: str, low: float, high: float, count: int) -> "Axis":
        """Return `count` Chebyshev nodes, including both ends, rounded to the digits of the table."""
        angles = np.pi * (np.arange(count) / (count - 1) - 0.5)
        return cls(name, rounded((low + high + (high - low) * np.sin(angles)) / 2))

    def basis(self, at: Values) -> Float[np.ndarray, "... n"]:
        """Return, at some places, the polynomials that are 1 at one node and 0 at the others (barycentric formula)."""
        width = (self.nodes[-1] - self.nodes[0]) / 4
        apart = (self.nodes[:, None] - self.nodes) / width
        np.fill_diagonal(apart, 1.0)
        away = np.asarray(at, float)[..., None] - self.nodes
        on_node = away == 0
        terms = 1 / (np.prod(apart, axis=1) * np.where(on_node, 1.0, away))
        return np.where(on_node.any(-1, keepdims=True), on_node, terms / terms.sum(-1, keepdims=True))


@dataclass(frozen=True)
class Grid:
    """Columns of values at all combinations of the nodes of some axes, rounded to the digits of the table."""

    axes: tuple[Axis, ...]
    columns: Mapping[str, Values]

    @classmethod
    def of(cls, axes: Sequence[Axis], function: Callable[..., Mapping[str, Values]]) -> "Grid":
        """Return the grid of a function.

        `function` takes the coordinates of all nodes, as one array per axis, and returns the columns.
        """
        places = np.meshgrid(*(axis.nodes for axis in axes), indexing="ij")
        return cls(tuple(axes), {name: rounded(values) for name, values in function(*places).items()})

    @classmethod
    def of_rows(cls, table: pd.DataFrame, axes: Sequence[str], columns: Sequence[str]) -> "Grid":
        """Return the grid of a table whose rows are all combinations of the nodes of `axes`."""
        ordered = table.sort_values([*axes])
        grid_axes = tuple(Axis(name, np.unique(ordered[name])) for name in axes)
        shape = [len(axis.nodes) for axis in grid_axes]
        return cls(grid_axes, {name: ordered[name].to_numpy().reshape(shape) for name in columns})

    def read(self, column: str, *at: Values) -> Values:
        """Return the polynomial through the column, at coordinates that are arrays of the same shape."""
        values = self.columns[column]
        places = np.broadcast_arrays(*at)
        # contract one axis after another; the first axis of `values` becomes the place
        for number, (axis, place) in enumerate(zip(self.axes, places, strict=True)):
            basis = axis.basis(place.ravel())
            values = np.einsum("pn,n...->p..." if number == 0 else "pn,pn...->p...", basis, values)
        return values.reshape(places[0].shape)

    @property
    def frame(self) -> pd.DataFrame:
        """The table with one row per node."""
        places = np.meshgrid(*(axis.nodes for axis in self.axes), indexing="ij")
        named = dict(zip((axis.name for axis in self.axes), places, strict=True)) | dict(self.columns)
        return pd.DataFrame({name: values.ravel() for name, values in named.items()})


def rounded(values: Values) -> Values:
    """Return the values rounded to the digits of a published table."""
    return np.vectorize(lambda value: float(f"{value:.{DIGITS}g}"), otypes=[float])(np.asarray(values))
