"""Bayes: ridge regression with the right penalty, averaged over drawn prompts."""

from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray

from chapters.published_experiment.protocol import LAWS
from lib.icl import published_task


class Average(NamedTuple):
    """A mean square over drawn prompts, and its standard error."""

    mean: float
    std_error: float


# Mean squares of ridge regression by (law, length).
Ridge = dict[tuple[str, int], Average]


def average(lengths: list[int], prompts: int, *, key: PRNGKeyArray) -> Ridge:
    """Mean square of ridge regression with the right penalty, in batches that give its standard error."""
    batches = 20
    averages = {}
    for length in sorted(set(lengths)):
        batch_mean = jax.jit(
            jax.vmap(
                lambda task, key, length=length: task.bayes_risk(length, key=key, n=-(-prompts // batches)), (None, 0)
            )
        )
        keys = jr.split(jr.fold_in(key, length), batches)
        for law, bug in LAWS.items():
            means = 2 * np.asarray(batch_mean(published_task(bug), keys))
            error = means.std(ddof=1) / np.sqrt(batches)
            averages[law, length] = Average(means.mean(), error)
    return averages


def bayes_frame(bayes: Ridge) -> pd.DataFrame:
    """A row each law and length."""
    rows = [
        {"law": law, "length": length, "bayes": these.mean, "bayes_std_error": these.std_error}
        for (law, length), these in bayes.items()
    ]
    return pd.DataFrame(rows)
