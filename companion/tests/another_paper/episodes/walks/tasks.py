"""The walks, one task per number of steps."""

from collections.abc import Sequence
from functools import partial

from walkers import ends

from companion.authoring.tasks import Arrays, Tasks


def tasks(*, seed: int, steps: Sequence[int], walkers: int) -> Tasks:
    """Return the tasks; they depend on all parameters except the quantile of the claim."""
    return {f"steps-{n}": partial(_walks, n, walkers, seed) for n in steps}


def _walks(n: int, walkers: int, seed: int) -> Arrays:
    return {"ends": ends(n, walkers, seed=seed)}
