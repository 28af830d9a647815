"""Checkpoints: files from which a long computation resumes after it was killed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from companion.io.atomic import replacing


@dataclass(frozen=True)
class Checkpoint:
    """The arrays of one computation in a file; `run` identifies the computation."""

    path: Path
    run: str

    def load(self, start: Sequence[npt.ArrayLike]) -> Sequence[npt.ArrayLike]:
        """Return the arrays that were saved last, unchanged, or `start` if there is no file.

        Raises:
          ValueError: if the file belongs to another run, or its arrays have other shapes or types than `start`.
        """
        if not self.path.exists():
            return start
        with np.load(self.path) as file:
            run = str(file["run"])
            arrays = [file[f"arr_{i}"] for i in range(len(file.files) - 1)]
        if run != self.run or _shapes_and_types(arrays) != _shapes_and_types(start):
            raise ValueError(
                f"`{self.path}` is the checkpoint of another run, {run!r}, not of {self.run!r}. Remove it, or give "
                "this run another file."
            )
        return arrays

    def save(self, arrays: Sequence[npt.ArrayLike]) -> None:
        """Replace the file atomically: after a kill or a power failure it contains either the old or the new arrays."""
        with replacing(self.path) as file:
            np.savez(file, *map(np.asarray, arrays), run=np.asarray(self.run))
            file.flush()
            os.fsync(file.fileno())


def _shapes_and_types(arrays: Sequence[npt.ArrayLike]) -> list[tuple[tuple[int, ...], np.dtype]]:
    return [(array.shape, array.dtype) for array in map(np.asarray, arrays)]
