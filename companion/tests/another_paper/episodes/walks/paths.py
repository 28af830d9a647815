"""The walks that both figures of this chapter show."""

from collections.abc import Mapping, Sequence

import numpy as np

from companion.authoring.tasks import gather
from episodes.walks.tasks import tasks

# The final positions of the walkers, by number of steps.
Ends = Mapping[int, np.ndarray]


def walk(steps: Sequence[int], walkers: int, *, seed: int) -> Ends:
    """Return the final positions of the walkers for every number of steps."""
    values = gather(tasks(seed=seed, steps=steps, walkers=walkers))
    return {n: value["ends"] for n, value in zip(steps, values, strict=True)}
