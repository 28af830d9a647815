"""The tasks, the heads that training starts from, and the keys: six sub-Gaussian tasks, and a control that is not."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from lib.attention import Attention
from lib.icl.blocks import block_attention
from lib.icl.tasks import Classification, GeneralRegression, IndexRegression, Task
from lib.measures import Gaussian, GaussianMixture, Laplace, Rademacher, Uniform

# Covariates are in R², tokens in R³.
DIMENSION = 2
NOISE = 0.3
CONTROL = "Laplace (control)"

T = TypeVar("T")


@dataclass(frozen=True)
class Problem:
    """A task and the head that training starts from."""

    task: Task
    start: Attention


def problems() -> dict[str, Problem]:
    """Six sub-Gaussian tasks, covariates of covariance I, and the control.

    The gain starts large and the bilinear form small, and since the flow of regression keeps ‖A‖² - b² it ends with A
    small too: with queries of covariance I this is what makes H² < ½.
    """
    ones, eye = np.ones(DIMENSION), np.eye(DIMENSION)
    # bounded tasks, so that all labels share one sub-Gaussian constant; E ‖w‖² = 1
    vectors = Uniform(np.sqrt(3 / DIMENSION) * ones)
    apart = np.diag([0.64, 0.0])
    halves = GaussianMixture(np.zeros(2), Gaussian([[0.8, 0.0], [-0.8, 0.0]], np.stack([eye - apart] * 2)))
    tasks = {
        "Gaussian": GeneralRegression(Gaussian(0 * ones, eye), vectors, NOISE),
        "signs": GeneralRegression(Rademacher(ones), vectors, NOISE),
        "uniform": GeneralRegression(Uniform(np.sqrt(3) * ones), vectors, NOISE),
        "mixture": GeneralRegression(halves, vectors, NOISE),
        "tanh target": IndexRegression(jnp.tanh, vectors, NOISE),
        "classification": Classification(vectors),
    }
    start = block_attention(0.1 * eye, 3.5)
    # unit variance; queries are signs, so that tilts are bounded: they stay between half the pole and the pole, √2
    control = GeneralRegression(Laplace(np.sqrt(0.5) * ones), vectors, NOISE, Rademacher(ones))
    return {name: Problem(task, start) for name, task in tasks.items()} | {
        CONTROL: Problem(control, block_attention(0.9 * eye, 0.1))
    }


def problems_of(tasks: list[str]) -> dict[str, Problem]:
    """The tasks asked for and the control."""
    return {name: problem for name, problem in problems().items() if name in (*tasks, CONTROL)}


def sub_gaussian(by_task: Mapping[str, T]) -> dict[str, T]:
    """All but the control."""
    return {name: value for name, value in by_task.items() if name != CONTROL}


def file_name(task: str) -> str:
    """The task's name, fit for a file."""
    return "-".join(re.findall(r"\w+", task))


# A key a task.
ByTask = Mapping[str, PRNGKeyArray]


class Keys(NamedTuple):
    """One key a simulation and a task."""

    episodes: ByTask
    training: ByTask
    checkpoints: ByTask


def flow_key(seed: int) -> PRNGKeyArray:
    """For the random start of the exact flows."""
    return jr.fold_in(jr.key(seed), len(problems()))


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`: those of a task do not depend on which others are asked for."""
    key, names = jr.key(seed), list(problems())
    split = [jr.split(jr.fold_in(key, index), len(Keys._fields)) for index in range(len(names))]
    return Keys(*(dict(zip(names, of_tasks, strict=True)) for of_tasks in zip(*split, strict=True)))
