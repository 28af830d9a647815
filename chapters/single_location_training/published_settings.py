"""Descents at the settings of the public code of [M24], and descents of softmax with as many steps.

The code is github.com/PierreMarion23/single-location-regression, commit e64b755, files `config.py`, `dynamics.py` and
`utils.py`. We read it for its settings and do not use it. The results are tracked in `data/`; `data/make.py` recomputes
them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.single_location_training.descents import STARTS
from chapters.single_location_training.sphere_descent import (
    OverlapTrajectory,
    SphereTask,
    descend_on_prompts,
    descend_on_sphere,
    erf_risk,
    softmax_risk,
    tangential_step,
)

DATA = Path(__file__).resolve().parent / "data"
SEED, REPEATS, RECORDS = 0, 30, 50
LENGTH, VARIANCE = 10, 0.5
# Number of steps after which λ is half of its first value, in the schedule of the authors' code.
HALVED = 10**4


@dataclass(frozen=True)
class Experiment:
    """The starts of the runs, the first sharpness λ and whether it decreases, and the steps.

    `step_size` belongs to the risk itself, not to the risk in units of γ². With a `batch`, each step uses new prompts.
    """

    start: str
    sharpness: float
    falling: bool
    step_size: float
    steps: int
    dimension: int = 400
    batch: int = 0
    noise_std: float = 0.0

    @property
    def sharpnesses(self) -> Float[np.ndarray, " steps"]:
        """λ at each step."""
        return self.sharpness / (1.0 + self.falling * np.arange(self.steps) / HALVED)


ON, FLAT, SHARP, FALLING, PROMPTS, SOFTMAX = (
    "on the manifold, λ = 0.1",
    "anywhere, λ = 0.1",
    "anywhere, λ = 1",
    "anywhere, λ falls from 1",
    "SGD, λ falls from 2",
    "softmax, anywhere, λ = 1",
)
EXPERIMENTS: Mapping[str, Experiment] = {
    ON: Experiment("on the manifold", 0.1, False, 4e-3, 20_000),
    FLAT: Experiment("anywhere", 0.1, False, 4e-3, 20_000),
    SHARP: Experiment("anywhere", 1.0, False, 1e-3, 120_000),
    FALLING: Experiment("anywhere", 1.0, True, 4e-3, 120_000),
    PROMPTS: Experiment("anywhere", 2.0, True, 1e-3, 200_000, dimension=80, batch=5, noise_std=0.1),
    SOFTMAX: Experiment("anywhere", 1.0, False, 4e-3, 20_000),
}


def run(name: str, repeats: Sequence[int], *, seed: int = SEED) -> OverlapTrajectory:
    """Return descents of one experiment, stacked; the random key of a run is fold_in(key(seed), repeat)."""
    experiment = EXPERIMENTS[name]
    task = SphereTask(experiment.dimension, LENGTH, VARIANCE)
    risk = partial(softmax_risk if name == SOFTMAX else erf_risk, task)
    lams, every = jnp.asarray(experiment.sharpnesses), experiment.steps // RECORDS

    def one(key):
        start_key, prompt_key = jr.split(key)
        start = STARTS[experiment.start](task.dimension, key=start_key)
        if not experiment.batch:
            step_size = VARIANCE * experiment.step_size  # risks are in units of γ²
            return descend_on_sphere(risk, start, lams, step_size=step_size, every=every, move=tangential_step)
        how = {"batch": experiment.batch, "noise_std": experiment.noise_std, "step_size": experiment.step_size}
        return descend_on_prompts(task, start, lams, every=every, key=prompt_key, **how)

    keys = jnp.stack([jr.fold_in(jr.key(seed), repeat) for repeat in repeats])
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(keys))


def read_tracked() -> pd.DataFrame:
    """Return the tracked table; `data/README.md` describes its rows."""
    return pd.read_csv(DATA / "published.csv")
