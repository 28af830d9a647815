"""How the pictures of this chapter read their tables: between the nodes, as the page does."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from chapters.laboratory.grids import Axis, Grid


def as_grid(table: pd.DataFrame, axes: Sequence[str], columns: Sequence[str]) -> Grid:
    """Rows at all combinations of the nodes of some axes, as what can be read between them."""
    ordered = table.sort_values([*axes])
    nodes = [np.unique(ordered[name]) for name in axes]
    shape = [len(values) for values in nodes]
    values = {name: ordered[name].to_numpy().reshape(shape) for name in columns}
    return Grid(tuple(Axis(name, places) for name, places in zip(axes, nodes, strict=True)), values)
