"""The tracked trainings of two heads: key along each run, key at rest, and the exact optimum."""

from dataclasses import dataclass
from pathlib import Path

import jax.numpy as jnp
import pandas as pd

from chapters.opposite_heads.exact_risks import regression
from chapters.opposite_heads.published_losses import PUBLISHED_DIMENSION, PUBLISHED_NOISE
from chapters.opposite_heads.style import RUN
from chapters.opposite_heads.training import LAST_PART, LENGTH
from lib.icl import best_pair

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class TrainedPairs:
    """Rows of all runs, the mean key of each run over its last part, and the key of the exact optimum."""

    rows: pd.DataFrame
    ends: pd.DataFrame
    best_key: float

    def keys(self, start: str, step_size: str) -> pd.Series:
        """Return the keys at the end of the runs of this kind, by seed."""
        return self.ends.loc[start, step_size]["key"]


def solve_trained_pairs() -> TrainedPairs:
    """Return the tracked runs with their ends, and the exact optimum of a pair at the published length."""
    rows = pd.read_csv(DATA / "trainings.csv")
    last = rows[rows["step"] > (1 - LAST_PART) * rows.groupby(RUN)["step"].transform("max")]
    ends = last.groupby(RUN)[["key", "value"]].mean()
    task = regression(PUBLISHED_DIMENSION, PUBLISHED_NOISE)
    return TrainedPairs(rows, ends, float(best_pair(task, jnp.log(float(LENGTH)))[0]))
