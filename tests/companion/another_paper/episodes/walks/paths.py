"""The walks of this chapter, which both figures look at."""

from collections.abc import Mapping, Sequence

import numpy as np

from companion.authoring.tasks import gather
from episodes.walks.tasks import tasks

# By number of steps: where the walkers are at the end.
Ends = Mapping[int, np.ndarray]


def walk(steps: Sequence[int], walkers: int, *, seed: int) -> Ends:
    """Walks of every number of steps."""
    values = gather(tasks(seed=seed, steps=steps, walkers=walkers))
    return {n: value["ends"] for n, value in zip(steps, values, strict=True)}
