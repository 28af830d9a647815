"""The Bayes risk: ridge regression with the optimal penalty, averaged over drawn prompts."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray

from chapters.published_experiment.protocol import LAWS, published_task
from lib.statistics import standard_error

# Batches of prompts whose spread gives the standard error; `Parameters` requires a multiple of it.
BATCHES = 20


class MeanSquare(NamedTuple):
    """A mean square over drawn prompts, and its standard error."""

    mean: float
    std_error: float


# Mean squares of ridge regression by (law, length).
Ridge = Mapping[tuple[str, int], MeanSquare]


def simulate_ridge(lengths: list[int], prompts: int, *, key: PRNGKeyArray) -> Ridge:
    """Return mean squares of ridge regression with the optimal penalty, with standard errors from batches."""
    averages = {}
    for length in sorted(set(lengths)):
        batch_mean = jax.jit(
            jax.vmap(lambda task, key, length=length: task.bayes_risk(length, key=key, n=prompts // BATCHES), (None, 0))
        )
        keys = jr.split(jr.fold_in(key, length), BATCHES)
        for law, bug in LAWS.items():
            means = 2 * np.asarray(batch_mean(published_task(bug), keys))
            averages[law, length] = MeanSquare(means.mean(), standard_error(means))
    return averages


def bayes_frame(bayes: Ridge) -> pd.DataFrame:
    """Return one row per pair of covariances and length."""
    rows = [(law, "ridge", length, *average) for (law, length), average in bayes.items()]
    return pd.DataFrame(rows, columns=["law", "predictor", "length", "mean_square", "std_error"])
