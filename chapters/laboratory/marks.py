"""How the pictures of this chapter read their tables: between the rows, as the page does."""

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.laboratory.grids import Grid

Values = Float[np.ndarray, "..."]


def between(table: pd.DataFrame, column: str, **places: Values | float) -> Values:
    """A column whose rows are all combinations of the nodes of some axes, at places along these, by name."""
    return Grid.of_rows(table, [*places], [column]).read(column, *places.values())
