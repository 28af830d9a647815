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
    """The arrays of one computation in one file. `run` identifies the computation: the file of another is refused."""

    path: Path
    run: str

    def load(self, start: Sequence[npt.ArrayLike]) -> Sequence[npt.ArrayLike]:
        """Return the arrays saved last, bit by bit, or `start` if there are none.

        Raises:
          ValueError: if the file belongs to another run, or its arrays have other shapes or types than `start`.
        """
        if not self.path.exists():
            return start
        with np.load(self.path) as file:
            run = str(file["run"])
            arrays = [file[f"arr_{i}"] for i in range(len(file.files) - 1)]
        if run != self.run or _looks(arrays) != _looks(start):
            raise ValueError(
                f"`{self.path}` is the checkpoint of another run: remove it, or give this run another file. "
                f"It is of {run!r}, this is {self.run!r}."
            )
        return arrays

    def save(self, arrays: Sequence[npt.ArrayLike]) -> None:
        """Replace the file atomically: after a kill or a loss of power it is complete, old or new."""
        with replacing(self.path) as file:
            np.savez(file, *map(np.asarray, arrays), run=np.asarray(self.run))
            file.flush()
            os.fsync(file.fileno())


def _looks(arrays: Sequence[npt.ArrayLike]) -> list[tuple[tuple[int, ...], np.dtype]]:
    return [(array.shape, array.dtype) for array in map(np.asarray, arrays)]
