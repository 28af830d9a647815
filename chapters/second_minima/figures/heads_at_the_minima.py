r"""At the second minimum the head is swapped in one direction: the label enters the score, and covariates are values.

Each square is $U$ of softmax attention: the entry in a row and a column says how strongly this coordinate of a token
(row) and this coordinate of the query (column) contribute to the score. The column next to it is $v$, the value of each
coordinate of the token. Outlined are the row and the entries of $v$ that are zero for an aligned head. They are zero at
the optimum (left) and not at the second minimum (right). Colours run from the entry of largest size to its negative,
and zero is blank. Both heads are for the corrected covariances. The column of $U$ that a query without label does not
use is left out. Signs are chosen such that the value of the label is positive. The table has the heads of linear
attention too, which look alike; where $U$ can grow as $v$ shrinks without a change of the output, it has the head with
$\|U\|=\|v\|$.

Alt: Two matrices with a column next to each; the last row of each matrix and the upper part of each column are
outlined. At the optimum, left, the matrix has a strong diagonal and the outlined parts are blank. At the second
minimum, right, the diagonal is weaker and the outlined parts are filled.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapters.published_experiment.protocol import POOLS, WIDTH, published_task
from chapters.second_minima.landscape import copies
from chapters.second_minima.published_runs import CORRECTED
from chapters.second_minima.stationary_heads import OPTIMUM, SECOND, Landscapes
from chapters.style import readable_on, signed_colours
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE

PLACES = (OPTIMUM, SECOND)
READ = "v"


def numbers(landscapes: Landscapes) -> Numbers:
    """Return the entries of four heads; claim that the aligned part leaves out the swapped direction."""
    heads = {(pool, place): _entries(landscapes, pool, place) for pool in POOLS for place in PLACES}
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
        "column": Column("Coordinate of the query for an entry of $U$; `v` for an entry of $v$", "name"),
        # searches end at small gradients, not at zero gradients
        "entry": Column("Value of the entry", absolute=1e-3),
    }
    shares = {place: [_share(heads[pool, place]) for pool in POOLS] for place in PLACES}
    claim = Claims("published-experiment", source="measured here", box="served-two-ways")
    claim.at_most(
        "left-out",
        "At the second minimum the head is not aligned in the direction in which it is swapped: the part of $U$ along "
        "the first principal axis, over the norm of the block of covariates, is not above 0 "
        "(measured: the larger of the two heads).",
        max(shares[SECOND]),
        0,
        because="a positive part would be aligned in this direction",
        rejects=("every direction is aligned, as at the optimum", min(shares[OPTIMUM])),
    )
    return Numbers(Table(pd.DataFrame(rows), columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the matrix and the column of softmax at both minima, with the row and the column of a swapped head."""
    figure, row = plt.subplots(1, 4, figsize=(WIDE, 4.4), width_ratios=(5, 1, 5, 1))
    words = (("labels not scored", "labels\nreturned"), ("labels scored", "covariates\nreturned"))
    for place, (name, shown) in enumerate(table[table["activation"] == "softmax"].groupby("place", sort=False)):
        names = list(dict.fromkeys(shown["row"]))
        entries = shown.pivot(index="row", columns="column", values="entry").loc[names]
        left, right = row[2 * place : 2 * place + 2]
        _cells(left, entries[names[:-1]])
        _cells(right, entries[[READ]])
        left.set_title(f"softmax, {name}", fontsize=12)
        left.set_yticks(np.arange(len(names)) + 0.5, [_symbol(one) for one in names])
        right.set_yticks([])
        width = len(names) - 1
        outline = {"fill": False, "edgecolor": "C1", "linewidth": 3, "clip_on": False, "zorder": 5}
        left.add_patch(Rectangle((0, width), width, 1, **outline))
        right.add_patch(Rectangle((0, 0), 1, width, **outline))
        left.set_xlabel(words[place][0], color="C1", fontsize=12)
        right.set_xlabel(words[place][1], color="C1", fontsize=11, loc="right")
    figure.supylabel("coordinate of a token", fontsize=11)
    return figure


def _entries(landscapes: Landscapes, pool: str, place: str) -> Float[np.ndarray, "rows columns"]:
    """Return U with v as a further column, of the copy with positive values for the label and for covariates."""
    points = copies(pool, landscapes[pool, CORRECTED].named[place].point)
    point = max(points, key=lambda one: (round(one[-1], 6), one[-WIDTH:-1].sum()))
    matrix, value = np.split(point, [WIDTH * (WIDTH - 1)])
    return np.column_stack([matrix.reshape(WIDTH, WIDTH - 1), value])


def _share(entries: Float[np.ndarray, "rows columns"]) -> float:
    """Return the part along the first principal axis of the block of U on covariates, over the norm of the block."""
    block, axis = entries[: WIDTH - 1, : WIDTH - 1], np.linalg.eigh(np.asarray(published_task().cov))[1][:, -1]
    return float(axis @ block @ axis / np.linalg.norm(block))


def _symbol(name: str) -> str:
    return f"${name[0]}_{name[1:]}$" if len(name) > 1 else f"${name}$"


def _cells(axes: Axes, entries: pd.DataFrame) -> None:
    """Draw coloured cells, with numbers in those with large entries."""
    values = entries.to_numpy()
    size = np.abs(values).max()
    signed = signed_colours()
    axes.pcolormesh(values, cmap=signed, vmin=-size, vmax=size, edgecolors="face")
    for row, column in np.argwhere(np.abs(values) >= 0.15):
        text = f"{values[row, column]:.1f}".replace("-", "−")
        colour = readable_on(signed((values[row, column] / size + 1) / 2))
        axes.text(column + 0.5, row + 0.5, text, color=colour, ha="center", va="center", fontsize=10)
    axes.invert_yaxis()
    axes.set_xticks(np.arange(values.shape[1]) + 0.5, [_symbol(name) for name in entries.columns])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(True)
