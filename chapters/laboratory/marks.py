"""How the pictures of this chapter read their tables: between the rows, as the page does."""

import numpy as np
import pandas as pd
from jaxtyping import Float

Values = Float[np.ndarray, "..."]


def between(table: pd.DataFrame, column: str, **places: Values | float) -> Values:
    """A column whose rows are all combinations of the nodes of some axes, at places along these, by name."""
    ordered = table.sort_values([*places])
    axes = [np.unique(ordered[name]) for name in places]
    values = ordered[column].to_numpy().reshape([len(nodes) for nodes in axes])
    for number, (nodes, place) in enumerate(zip(axes, np.broadcast_arrays(*places.values()), strict=True)):
        basis = np.stack([_one_at(node, nodes, place.ravel()) for node in nodes], axis=-1)
        values = np.einsum("pn,n...->p..." if number == 0 else "pn,pn...->p...", basis, values)
    return values


def _one_at(node: float, nodes: Values, at: Values) -> Values:
    """Lagrange's polynomial that is 1 at one node and 0 at the others, which `grids.Axis.basis` has for all at once."""
    others = nodes[nodes != node]
    return np.prod((at[:, None] - others) / (node - others), axis=1)
