"""Heavy simulations in pieces that other processes, or other machines, may compute beforehand.

An experiment that has such pieces lists them in a function `shards` of its module, which takes the experiment's
parameters, and asks `gather` for their values. `companion build --shards` computes each piece in a process of its own;
what is not there the experiment computes in place. The numbers are the same either way.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

# The folder where values of shards were left, if there is one.
FOLDER = "COMPANION_SHARDS"

# What one piece comes to, by name; and the pieces of an experiment, by names that are file names too.
Arrays = dict[str, np.ndarray]
Shards = Mapping[str, Callable[[], Arrays]]


def gather(shards: Shards) -> list[Arrays]:
    """The value of each, in order: read where it was left, else computed now."""
    return [_read(name) or compute() for name, compute in shards.items()]


def _read(name: str) -> Arrays | None:
    path = Path(os.environ.get(FOLDER, os.devnull)) / f"{name}.npz"
    if not path.is_file():
        return None
    with np.load(path) as arrays:
        return dict(arrays)
