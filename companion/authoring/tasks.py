"""Heavy computations in pieces that other processes, or other machines, may compute beforehand.

A chapter that has such pieces lists them in the function `pieces` of its `pieces.py`, by name, and asks `gather` for
their values. `companion build --tasks` computes each in a separate process; a missing piece is computed in place.
The numbers are the same either way. The keywords of `pieces` are the parameters that decide the values, and no others.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

# The folder where values of pieces were left, if there is one.
FOLDER = "COMPANION_PIECES"

# What one piece comes to, by name; and the pieces of a chapter, by names that are file names too.
Arrays = dict[str, np.ndarray]
Pieces = Mapping[str, Callable[[], Arrays]]


def gather(pieces: Pieces) -> list[Arrays]:
    """The value of each, in order: read where it was left, else computed now."""
    return [_read(name) or compute() for name, compute in pieces.items()]


def _read(name: str) -> Arrays | None:
    path = Path(os.environ.get(FOLDER, os.devnull)) / f"{name}.npz"
    if not path.is_file():
        return None
    with np.load(path) as arrays:
        return dict(arrays)
