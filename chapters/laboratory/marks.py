"""How the pictures of this chapter read their tables: between the rows, as the page does."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.laboratory.grids import Grid

Values = Float[np.ndarray, "..."]


def between(table: pd.DataFrame, column: str, **places: Values | float) -> Values:
    """A column whose rows are all combinations of the nodes of some axes, at places along these, by name."""
    return Grid.of_rows(table, [*places], [column]).read(column, *places.values())


def share_left(plane: Grid, ratio: float, largest_decade: int) -> Values:
    """Return the share 1 - P of linear attention's answer at τ = ratio·√(2 ln L), for L = 10, 100, … in the plane."""
    tops = np.sqrt(2 * np.log(10.0) * np.arange(1, largest_decade + 1))
    return 1.0 - np.exp(plane.read("log_participation", ratio * tops, tops))
