"""Plain training at one of the paper's settings: gradient descent and SGD where L-BFGS has trained before.

On the prompts, from the random starts, and at the ridges of the tracked `published_runs`, so that runs are compared one
by one. Tracked in `data/`, as `plain_runs`.
"""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from chapters.finite_samples import training
from chapters.finite_samples.published import RANDOM_STARTS, SPIKED, tasks
from lib.single_location import ErmResult, Trainer, full_batch_trainer, stochastic_trainer

PANEL, DIMENSION, ALPHAS = SPIKED, RANDOM_STARTS, (0.5, 1.0, 2.0, 5.0, 10.0)
# Gradient descent stops where its gradient is so flat, or after so many steps.
DESCENT = {"steps": 3000, "gradient_tolerance": 1e-4}
# SGD takes as many steps at every sample ratio, on so many prompts each; its first step depends on the head.
SGD_STEPS, BATCH, FIRST_STEPS = 20_000, 16, {"softmax": 0.3, "linear": 0.1}
HOW = {"descent": DESCENT, "sgd": {"steps": SGD_STEPS, "batch": BATCH, "first_steps": FIRST_STEPS}}


def descend(head: str, n: int) -> Trainer:
    """Gradient descent on all prompts."""
    return full_batch_trainer(**DESCENT)


def descend_in_batches(head: str, n: int) -> Trainer:
    """SGD in as many epochs as make `SGD_STEPS` on `n` prompts."""
    return stochastic_trainer(epochs=round(SGD_STEPS / (n // BATCH)), batch=BATCH, step_size=FIRST_STEPS[head])


METHODS: Mapping[str, Callable[[str, int], Trainer]] = {"gradient descent": descend, "SGD": descend_in_batches}


def same_prompts(published_runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of L-BFGS on the prompts of plain training, from both starts."""
    here = (published_runs["dimension"] == DIMENSION) & (published_runs["panel"] == PANEL)
    return published_runs[here & published_runs["alpha"].isin(ALPHAS)]


def train(method: str, head: str, *, alpha: float, ridge: tuple[float, float], seeds: Sequence[int]) -> ErmResult:
    """One run a seed, from a random start."""
    trainer = METHODS[method](head, round(alpha * DIMENSION))
    how = {"alpha": alpha, "ridge": ridge, "dimension": DIMENSION, "scene": tasks()[PANEL], "trainer": trainer}
    return training.train(head, "uninformed", seeds=seeds, **how)
