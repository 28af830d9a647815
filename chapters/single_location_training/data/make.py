"""Make the tracked table of descents at the settings of the code of [M24], and of softmax with as many steps.

    python -m chapters.single_location_training.data.make

It takes a quarter of an hour on one core, most of it for the steps on simulated prompts. A run that was killed
continues from its checkpoint in `_build/checkpoints/` when it is started again.
"""

from dataclasses import asdict

import numpy as np
import pandas as pd

from chapters.single_location_training import published_settings as runs
from companion import Column, Table
from companion.authoring.datasets import Result, in_parts, make

# Number of runs in one part.
TOGETHER = 5
QUANTITIES = {
    "risk": Column("Excess risk in units of γ², at the λ of that step; answering 0 costs 1"),
    "m_k": Column("⟨k, k*⟩"),
    "m_v": Column("⟨v, v*⟩"),
    "m_kv": Column("⟨k, v*⟩"),
    "m_vk": Column("⟨v, k*⟩"),
    "q_vk": Column("⟨k, v⟩"),
}
COLUMNS = {
    "experiment": Column("Start, sharpness λ, and SGD or softmax", "name"),
    "repeat": Column("Number of the run: its key is fold_in(key(seed), repeat)", "name"),
    "step": Column("Steps taken", "steps"),
    **QUANTITIES,
}


def published() -> Result:
    """Return one row per experiment, run and recorded step."""
    parts = [(name, first) for name in runs.EXPERIMENTS for first in range(0, runs.REPEATS, TOGETHER)]
    shape = (TOGETHER, runs.RECORDS + 1, len(QUANTITIES))

    def compute(part):
        name, first = part
        found = runs.run(name, range(first, first + TOGETHER))
        return np.stack([found.risk, *(getattr(found.overlaps, each) for each in [*QUANTITIES][1:])], axis=-1).ravel()

    kept = in_parts("single_location_training", "published", parts, compute, int(np.prod(shape)))
    rows = []
    for (name, first), part in zip(parts, kept, strict=True):
        steps = np.linspace(0, runs.EXPERIMENTS[name].steps, runs.RECORDS + 1).astype(int)
        for repeat, mine in enumerate(part.reshape(shape), start=first):
            where = {"experiment": name, "repeat": repeat, "step": steps}
            rows.append(pd.DataFrame({**where, **dict(zip(QUANTITIES, mine.T, strict=True))}))
    settings = {name: asdict(experiment) for name, experiment in runs.EXPERIMENTS.items()}
    task = {"length": runs.LENGTH, "variance": runs.VARIANCE, "seed": runs.SEED, "halved": runs.HALVED}
    return Result(Table(pd.concat(rows, ignore_index=True), COLUMNS), {**task, "experiments": settings}, digits=5)


if __name__ == "__main__":
    make(__file__, __doc__, {"published": published})
