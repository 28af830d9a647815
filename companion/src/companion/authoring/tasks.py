"""Tasks: parts of a heavy computation that other processes or machines can compute beforehand.

The function `tasks` in a chapter's `tasks.py` lists them by name, and `gather` returns their results.
`companion build --tasks` computes each task in a separate process; `gather` computes a missing result in place. The
numbers are the same either way. The keywords of `tasks` are exactly the parameters that decide the results.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

# Environment variable: the folder that contains the results of tasks, if there is one.
FOLDER = "COMPANION_TASKS"

# The result of one task, arrays by name; and the tasks of a chapter, by names that are file names, too.
Arrays = dict[str, np.ndarray]
Tasks = Mapping[str, Callable[[], Arrays]]


def gather(tasks: Tasks) -> list[Arrays]:
    """Return the result of each task, in order: read from the cache, otherwise computed now."""
    return [_read(name) or compute() for name, compute in tasks.items()]


def _read(name: str) -> Arrays | None:
    path = Path(os.environ.get(FOLDER, os.devnull)) / f"{name}.npz"
    if not path.is_file():
        return None
    with np.load(path) as arrays:
        return dict(arrays)
