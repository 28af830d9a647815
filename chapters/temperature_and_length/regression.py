"""In-context regression: the best softmax head of one length, used at another, with its scores multiplied or not."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.random as jr
import numpy as np
import scipy.optimize
from jaxtyping import Float, PRNGKeyArray
from scipy.special import softmax

from chapters.temperature_and_length.parameters import FULL_POWER, PAIRS, ROOT_POWER
from chapters.temperature_and_length.simulated_prompts import generator
from lib.icl import (
    Blocks,
    LinearRegression,
    best_blocks,
    block_risk,
    radial_average,
    score_table,
)
from lib.statistics import standard_error

# Prompts drawn at a time.
TOGETHER = 500
# How far, in logarithms, the best multiple of the scores is looked for.
WIDEST = 2.0


@dataclass(frozen=True)
class Risks:
    """Of the head trained at one length, at lengths of use: retrained, as it is, its scores at their best, and scaled.

    `factor` is the best multiple of its scores, `answered` what an infinite prompt asks for, 1/(bu) with A = uI.
    """

    trained: int
    used: Float[np.ndarray, " n"]
    retrained: Float[np.ndarray, " n"]
    kept: Float[np.ndarray, " n"]
    repaired: Float[np.ndarray, " n"]
    factor: Float[np.ndarray, " n"]
    scaled: Mapping[float, Float[np.ndarray, " n"]]
    answered: float


@dataclass(frozen=True)
class Trial:
    """One head trained at one length and used at another: its risk drawn, exact, at its training, and the best."""

    trained: int
    used: int
    drawn: float
    std_error: float
    exact: float
    at_training: float
    retrained: float


def task_of(dimension: int) -> LinearRegression:
    """Isotropic covariates and tasks, no noise."""
    return LinearRegression(np.eye(dimension))


@lru_cache
def train(dimension: int, length: int) -> Blocks:
    """The head of least risk at one length, A a multiple of the identity."""
    return best_blocks(task_of(dimension), float(np.log(length)), queries=radial_average(dimension))


def times(head: Blocks, factor: float) -> Blocks:
    """A head with its scores multiplied by a factor."""
    return Blocks(factor * head.matrix, head.gain)


def risk(head: Blocks, length: int) -> float:
    """Its risk on prompts of any length, exact."""
    dimension = head.matrix.shape[-1]
    return float(_risk(task_of(dimension), head, score_table(float(np.log(length))), radial_average(dimension)))


_risk = jax.jit(block_risk)


def repair(head: Blocks, length: int) -> tuple[float, float]:
    """The multiple of its scores at which the risk is least, and that risk."""
    found = scipy.optimize.minimize_scalar(
        lambda log_factor: np.log(risk(times(head, np.exp(log_factor)), length)),
        bounds=(-WIDEST, WIDEST),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(np.exp(found.x)), float(np.exp(found.fun))


def follow(dimension: int, trained: int, used: list[int]) -> Risks:
    """The head trained at one length at every length of use; scaled also by powers of ln L'/ln L."""
    head = train(dimension, trained)
    repairs = np.asarray([repair(head, length) for length in used])
    scaled = {
        power: np.asarray([risk(times(head, (np.log(L) / np.log(trained)) ** power), L) for L in used])
        for power in (ROOT_POWER, FULL_POWER)
    }
    return Risks(
        trained,
        np.asarray(used),
        np.asarray([risk(train(dimension, length), length) for length in used]),
        np.asarray([risk(head, length) for length in used]),
        repairs[:, 1],
        repairs[:, 0],
        scaled,
        float(1 / (head.gain * head.matrix[0, 0])),
    )


def compare(dimension: int, prompts: int, *, key: PRNGKeyArray) -> list[Trial]:
    """Exact risks against drawn prompts, for every pair (L, L')."""
    found = []
    for index, (trained, used) in enumerate(PAIRS):
        head = train(dimension, trained)
        errors = half_squares(head, used, prompts, key=jr.fold_in(key, index))
        drawn, error = float(errors.mean()), float(standard_error(errors))
        best = risk(train(dimension, used), used)
        found.append(Trial(trained, used, drawn, error, risk(head, used), risk(head, trained), best))
    return found


def half_squares(head: Blocks, length: int, prompts: int, *, key: PRNGKeyArray) -> Float[np.ndarray, " n"]:
    """`½(ŷ - y)²` of softmax attention on drawn prompts, token by token, with NumPy alone."""
    random, matrix, gain = generator(key), np.asarray(head.matrix), float(head.gain)
    parts = []
    for _ in range(-(-prompts // TOGETHER)):
        covariates = random.standard_normal((TOGETHER, length, len(matrix)))
        queries, tasks = random.standard_normal((2, TOGETHER, len(matrix)))
        scores = np.einsum("nli,ij,nj->nl", covariates, matrix, queries, optimize=True)
        labels = np.einsum("nli,ni->nl", covariates, tasks)
        answers = gain * np.sum(softmax(scores, axis=1) * labels, axis=1)
        parts.append(0.5 * (answers - np.sum(queries * tasks, axis=1)) ** 2)
    return np.concatenate(parts)[:prompts]
