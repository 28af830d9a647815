"""Six sub-Gaussian tasks and a control, the heads at which training starts, and random keys by task."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.trajectory_stability.prediction_tasks import Classification, GeneralRegression, IndexRegression, Task
from lib.attention import Attention
from lib.icl.blocks import block_attention
from lib.measures import Gaussian, GaussianMixture, Laplace, Rademacher, Uniform
from lib.random import named_keys

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
    """Return six sub-Gaussian tasks with covariates of covariance I, and the control.

    The gain starts large and the bilinear form small. The flow of regression conserves ‖A‖² - b², so that A is small at
    the end too. With queries of covariance I, this gives H² < ½.
    """
    ones, eye = np.ones(DIMENSION), np.eye(DIMENSION)
    # bounded task vectors, so that all labels share one sub-Gaussian constant; E ‖w‖² = 1
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
    # unit variance; queries are signs, so that tilts stay between half the pole and the pole, √2
    control = GeneralRegression(Laplace(np.sqrt(0.5) * ones), vectors, NOISE, Rademacher(ones))
    return {name: Problem(task, start) for name, task in tasks.items()} | {
        CONTROL: Problem(control, block_attention(0.9 * eye, 0.1))
    }


def problems_of(tasks: list[str]) -> dict[str, Problem]:
    """Return the tasks with these names, and the control."""
    return {name: problem for name, problem in problems().items() if name in (*tasks, CONTROL)}


def sub_gaussian(by_task: Mapping[str, T]) -> dict[str, T]:
    """Return the mapping without the control."""
    return {name: value for name, value in by_task.items() if name != CONTROL}


def file_name(task: str) -> str:
    """Return the name of the task, valid in file names."""
    return "-".join(re.findall(r"\w+", task))


# One random key per task.
ByTask = Mapping[str, PRNGKeyArray]


def keys_by_task(seed: int, simulation: str) -> ByTask:
    """Return one key per task and the control, named by the simulation and the task."""
    names = [f"{simulation} of {task}" for task in problems()]
    return dict(zip(problems(), named_keys(seed, *names).values(), strict=True))
