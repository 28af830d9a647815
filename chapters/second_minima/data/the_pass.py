"""Search the lowest pass from the second minimum to the optimum, for both heads, and compute the path over it.

    python -m chapters.second_minima.data.the_pass

makes `searches` and `the_pass` in six minutes of one core. A killed run continues with the
search that it was computing.
"""

from functools import cache

import numpy as np
import pandas as pd

from chapters.published_experiment.protocol import POOLS, WIDTH
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.published_runs import CORRECTED
from chapters.second_minima.saddle_search import (
    BENDS,
    COLUMNS,
    FEW_NODES,
    IMAGES,
    SEARCH_COLUMNS,
    SEARCHES,
    SLIDES,
    TABLE,
    WAY_DOWN,
    joins,
    search,
    whole_way,
)
from chapters.second_minima.stationary_heads import StationaryHeads, find_heads_of
from companion import Table
from companion.authoring.datasets import Result, in_parts, make

PARAMETERS = {
    "length": SECOND_LENGTH,
    "images": IMAGES,
    "slides": {name: list(slide) for name, slide in SLIDES.items()},
    "few_nodes": FEW_NODES,
    "way_down": {name: list(way) for name, way in WAY_DOWN.items()},
}
PARTS = [(activation, number) for activation in POOLS for number in range(2 * len(BENDS))]
_NUMBERS = ("square", "slope", "negative", "top", "bend")
_places = cache(lambda activation: find_heads_of(activation, CORRECTED))


def _part(part: tuple[str, int]) -> np.ndarray:
    row, saddle = search(part[0], _places(part[0]), part[1])
    return np.append([float(row[name]) for name in _NUMBERS], saddle)


def _found() -> tuple[pd.DataFrame, np.ndarray]:
    """Return all searches, one row each, and their saddles."""
    kept = in_parts("second_minima", "the_pass", PARTS, _part, len(_NUMBERS) + WIDTH * WIDTH)
    rows = pd.DataFrame(kept[:, : len(_NUMBERS)], columns=list(_NUMBERS)).assign(
        activation=[activation for activation, _ in PARTS],
        end=[("same", "other")[number % 2] for _, number in PARTS],
        negative=kept[:, _NUMBERS.index("negative")].astype(int),
    )
    return rows[list(SEARCH_COLUMNS)], kept[:, len(_NUMBERS) :]


def searches() -> Result:
    """Return the table with one row per search."""
    return Result(Table(_found()[0], SEARCH_COLUMNS), PARAMETERS)


def the_pass() -> Result:
    """Return the path over the lowest saddle from which descent leads to the second minimum and to the optimum."""
    rows, saddles = _found()
    ways = []
    for activation in POOLS:
        places: StationaryHeads = _places(activation)
        order = rows[rows["activation"] == activation]["square"].sort_values(kind="stable").index
        candidates = (whole_way(activation, places, saddles[i]) for i in order)
        ways.append(next(way for way in candidates if joins(activation, places, way)))
    return Result(Table(pd.concat(ways, ignore_index=True), COLUMNS), PARAMETERS, digits=9)


if __name__ == "__main__":
    make(__file__, __doc__, {SEARCHES: searches, TABLE: the_pass})
