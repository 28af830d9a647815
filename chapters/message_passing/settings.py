"""Settings of the chapter: three tasks at four sample ratios, a hard task, and access to tracked results.

Long runs are tracked in `data/`; `data/make.py` computes them again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd

from chapters.message_passing.inference import InferenceTrajectory, simulate_message_passing
from lib.single_location import Spiked

DATA = Path(__file__).resolve().parent / "data"
# Overlaps with the truth of a start without knowledge, and of a start very near the truth.
UNINFORMED, INFORMED = 1e-3, 0.999
STARTS = {"uninformed": UNINFORMED, "informed": INFORMED}
# Iterations of the tracked runs; nearly all are at rest by then, and the column `moved` says which are not.
ITERATIONS = 30
# Dimensions of the tracked runs, with the number of runs of each setting.
RUNS = {300: 16, 600: 16, 1200: 8}


@dataclass(frozen=True)
class Setting:
    """A spiked task and the noise of its labels."""

    length: int
    snr: float
    noise_std: float

    @property
    def task(self) -> Spiked:
        """Return the task of the library."""
        return Spiked(self.length, self.snr)

    @property
    def name(self) -> str:
        """Return the length and the signal strength as text."""
        return f"L = {self.length}, ν = {self.snr:g}"


# Tasks and sample ratios at which final risks are compared.
COMPARED = (Setting(2, 2.0, 0.3), Setting(3, 4.0, 0.3), Setting(5, 6.0, 0.3))
ALPHAS = (1.0, 2.0, 4.0, 8.0)
# A setting with a hard phase, the sample ratios of its runs, and their options.
HARD = Setting(10, 2.0, 0.03)
HARD_ALPHAS = (1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0)
HARD_RUN = {"dimension": 800, "iterations": 60, "damping": 0.3}
HARD_RUNS = 4


def read_tracked(name: str) -> pd.DataFrame:
    """Return a table of `data/`; the README there describes its rows."""
    return pd.read_csv(DATA / f"{name}.csv")


def infer(
    setting: Setting,
    *,
    alpha: float,
    dimension: int,
    seeds: Sequence[int],
    iterations: int = ITERATIONS,
    damping: float = 0.0,
    starts: Iterable[str] = tuple(STARTS),
    textbook: bool = False,
) -> dict[str, InferenceTrajectory]:
    """Run message passing from all `starts` on the same prompts; return runs stacked over seeds, by start.

    The key of a run is its seed folded with its dimension. With `textbook`, the textbook's step also runs, from the
    uninformed start.
    """
    cases = {start: (STARTS[start], 1.0) for start in starts} | ({"textbook": (UNINFORMED, 0.0)} if textbook else {})
    keys = jnp.stack([jr.fold_in(jr.key(seed), dimension) for seed in seeds])
    how = {"alpha": alpha, "dimension": dimension, "iterations": iterations, "damping": damping}
    stacked = _infer(keys, *np.transpose([*cases.values()]), setting=setting, **how)
    runs = [
        jax.tree.map(lambda leaf, number=number: np.asarray(leaf[:, number]), stacked) for number in range(len(cases))
    ]
    return dict(zip(cases, runs, strict=True))


@partial(jax.jit, static_argnames=("setting", "alpha", "dimension", "iterations", "damping"))
def _infer(keys, start_overlaps, stiffnesses, *, setting, **how) -> InferenceTrajectory:
    """Draw the prompts of a key once for all cases, whose products with the tokens are one product."""
    with jax.ensure_compile_time_eval():  # the length of prompts must be known
        task = setting.task

    def run(key, start_overlap, stiffness):
        same = {"noise_std": setting.noise_std, "start_overlap": start_overlap, "stiffness": stiffness, **how}
        return simulate_message_passing(task, **same, key=key)

    cases = jax.vmap(run, in_axes=(None, 0, 0))
    return jax.lax.map(lambda key: cases(key, start_overlaps, stiffnesses), keys)
