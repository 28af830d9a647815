"""Files from which a long computation goes on after it was killed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from companion.io.atomic import replacing


@dataclass(frozen=True)
class Checkpoint:
    """The arrays of one computation in one file. `run` says what is computed: another run's file is refused."""

    path: Path
    run: str

    def load(self, start: Sequence[npt.ArrayLike]) -> Sequence[npt.ArrayLike]:
        """What was saved last, to the bit, or `start` if nothing was; `start` also says what it must look like."""
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
        """Replace the file in one step: a kill, or a loss of power, leaves the old one or the new one, whole."""
        with replacing(self.path) as file:
            np.savez(file, *map(np.asarray, arrays), run=np.asarray(self.run))
            file.flush()
            os.fsync(file.fileno())


def _looks(arrays: Sequence[npt.ArrayLike]) -> list[tuple[tuple[int, ...], np.dtype]]:
    return [(array.shape, array.dtype) for array in map(np.asarray, arrays)]
