"""Values between the rows of the tables of this chapter, interpolated as on the page."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.laboratory.grids import Grid

Values = Float[np.ndarray, "..."]


def between(table: pd.DataFrame, column: str, **places: Values | float) -> Values:
    """Return a column of a table at places between the nodes of its axes; `places` has one array per axis."""
    return Grid.of_rows(table, [*places], [column]).read(column, *places.values())


def share_left(plane: Grid, ratio: float, largest_decade: int) -> Values:
    """Return 1 - P, the mean output in units of linear attention, at τ = ratio·√(2 ln L), for L = 10, 100, …"""
    tops = np.sqrt(2 * np.log(10.0) * np.arange(1, largest_decade + 1))
    return 1.0 - np.exp(plane.read("log_participation", ratio * tops, tops))
