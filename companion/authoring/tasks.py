"""Tasks: parts of heavy computations that other processes, or other machines, may compute beforehand.

The function `pieces` in a chapter's `pieces.py` returns its tasks by name, and the chapter calls `gather` for their
results. `companion build --tasks` computes each task in a separate process; `gather` computes a missing one in place.
The numbers are the same either way. The keywords of `pieces` are exactly the parameters that decide the results.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

# The environment variable with the folder of results that were computed beforehand.
FOLDER = "COMPANION_PIECES"

# The result of one task, arrays by name; and the tasks of a chapter by name, which is also a file name.
Arrays = dict[str, np.ndarray]
Pieces = Mapping[str, Callable[[], Arrays]]


def gather(pieces: Pieces) -> list[Arrays]:
    """Return the results of all tasks, in order; a result that was not computed beforehand is computed now."""
    return [_read(name) or compute() for name, compute in pieces.items()]


def _read(name: str) -> Arrays | None:
    path = Path(os.environ.get(FOLDER, os.devnull)) / f"{name}.npz"
    if not path.is_file():
        return None
    with np.load(path) as arrays:
        return dict(arrays)
