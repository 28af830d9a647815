r"""What the heads at the two minima look at, and what they read there.

Four heads under the corrected law: softmax above, linear attention below, at the optimum and at the second minimum. In
each the square is $U$, without the column that a query does not have: an entry says how much a coordinate of a token
(its row) adds to the score for a coordinate of the query (its column). The single column is $v$, by which the token's
coordinates are read. Colours run from the entry of largest size to its negative, zero is blank. At the optimum scores
see covariates and the label is read. At the second minimum one direction of the covariates is served the other way
round: the label is in the score, and covariates are read. Of linear attention, whose $U$ may grow as $v$ shrinks, the
head with both of one size is shown; signs are such that the label is read with a plus.

Alt: Four pictures of a matrix with a column beside it. At the optimum, left, the matrix has a strong diagonal, and of
the column only the last entry, the label's, is not blank; the last row of the matrix is blank. At the second minimum,
right, the diagonal is weaker, and the last row and the upper part of the column are filled.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters.published_experiment.landscape import copies
from chapters.published_experiment.matrix_colours import readable_on, signed_colours
from chapters.published_experiment.protocol import LAWS, POOLS, WIDTH, published_task
from chapters.published_experiment.stationary_heads import OPTIMUM, SECOND, Landscapes
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink

CORRECTED = next(iter(LAWS))
PLACES = (OPTIMUM, SECOND)
READ = "v"


def numbers(landscapes: Landscapes) -> Numbers:
    """The entries of four heads, and the direction that scores on covariates leave out at the second minimum."""
    heads = {(pool, place): _entries(landscapes, pool, place) for pool in POOLS for place in PLACES}
    return Numbers(_table(heads), (_left_out_claim(heads),))


def _entries(landscapes: Landscapes, pool: str, place: str) -> Float[np.ndarray, "rows columns"]:
    """U and beside it v, of the copy that reads the label, and covariates if it reads them, with a plus."""
    points = copies(pool, landscapes[pool, CORRECTED].named[place].point)
    point = max(points, key=lambda one: (round(one[-1], 6), one[-WIDTH:-1].sum()))
    matrix, value = np.split(point, [WIDTH * (WIDTH - 1)])
    return np.column_stack([matrix.reshape(WIDTH, WIDTH - 1), value])


def _table(heads: dict[tuple[str, str], Float[np.ndarray, "rows columns"]]) -> Table:
    """A row an entry."""
    coordinates = [*(f"x{i}" for i in range(1, WIDTH)), "y"]
    rows = [
        {"activation": pool, "place": place, "row": row, "column": column, "entry": entries[i, j]}
        for (pool, place), entries in heads.items()
        for i, row in enumerate(coordinates)
        for j, column in enumerate([*coordinates[:-1], READ])
    ]
    columns = {
        "activation": Column("Softmax or linear attention", "name"),
        "place": Column("Which minimum", "name"),
        "row": Column("Coordinate of a token", "name"),
        "column": Column("Coordinate of the query, for an entry of U; v, for one of v", "name"),
        # searches end where the slope is small
        "entry": Column("The entry", absolute=1e-3),
    }
    return Table(pd.DataFrame(rows), columns)


def _share(entries: Float[np.ndarray, "rows columns"]) -> float:
    """Of the block of U that scores covariates, the part along the first principal axis, over the block's norm."""
    block, axis = entries[: WIDTH - 1, : WIDTH - 1], np.linalg.eigh(np.asarray(published_task().cov))[1][:, -1]
    return float(axis @ block @ axis / np.linalg.norm(block))


def _left_out_claim(heads: dict[tuple[str, str], Float[np.ndarray, "rows columns"]]) -> Claim:
    """What is served the wrong way round is not served the right way as well."""
    shares = {place: [_share(heads[pool, place]) for pool in POOLS] for place in PLACES}
    return Claim(
        id="published-experiment-left-out",
        statement=(
            "At the second minimum the scores that see covariates do not serve the direction that is served the wrong "
            "way round: the part of U along the first principal axis, over the norm of the block, is not above 0; the "
            "larger of the two heads."
        ),
        source="measured here",
        box="served-two-ways",
        measured=max(shares[SECOND]),
        expected=0.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("every direction served the right way, as at the optimum", min(shares[OPTIMUM])),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A matrix and a column a head."""
    figure, grid = plt.subplots(2, 4, figsize=(8.0, 6.4), width_ratios=(5, 1, 5, 1))
    for row, (pool, those) in zip(grid, table.groupby("activation", sort=False), strict=True):
        for place, (name, head) in enumerate(those.groupby("place", sort=False)):
            names = list(dict.fromkeys(head["row"]))
            entries = head.pivot(index="row", columns="column", values="entry").loc[names]
            left, right = row[2 * place : 2 * place + 2]
            _cells(left, entries[names[:-1]])
            _cells(right, entries[[READ]])
            left.set_title(f"{pool}, {name}")
            left.set_yticks(np.arange(len(names)) + 0.5, [_symbol(one) for one in names])
            right.set_yticks([])
    figure.supylabel("coordinate of a token", fontsize=11)
    figure.supxlabel("coordinate of the query; what is read of the token", fontsize=11)
    headline(figure, "At the second minimum one direction is served the wrong way round")
    return figure


def _symbol(name: str) -> str:
    return f"${name[0]}_{name[1:]}$" if len(name) > 1 else f"${name}$"


def _cells(axes: Axes, entries: pd.DataFrame) -> None:
    """Coloured cells with their numbers, blanks without."""
    values = entries.to_numpy()
    size = np.abs(values).max()
    signed = signed_colours()
    axes.pcolormesh(values, cmap=signed, vmin=-size, vmax=size, edgecolors="face")
    for row, column in np.argwhere(np.abs(values) >= 0.05):
        text = f"{values[row, column]:.1f}".replace("-", "−")
        colour = readable_on(signed((values[row, column] / size + 1) / 2))
        axes.text(column + 0.5, row + 0.5, text, color=colour, ha="center", va="center", fontsize=9)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(values.shape[1]) + 0.5, [_symbol(name) for name in entries.columns])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color(ink())
