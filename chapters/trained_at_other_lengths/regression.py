"""In-context regression: risk of the best softmax head for one length at another length, with and without a factor."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.random as jr
import numpy as np
import scipy.optimize
from jaxtyping import Float, PRNGKeyArray
from scipy.special import softmax

from chapters.trained_at_other_lengths.numpy_generator import generator
from chapters.trained_at_other_lengths.parameters import FULL_POWER, PAIRS, ROOT_POWER
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk
from lib.statistics import standard_error

# Prompts per batch.
BATCH = 500
# Range of the search for the best factor on the scores: |ln factor| is at most this.
WIDEST = 2.0


@dataclass(frozen=True)
class Risks:
    """Risks at the lengths of use `used`, of a head trained at the length `trained`.

    `unchanged` is the risk of the head itself, `best_scaled` with its scores multiplied by `factor`, the best factor at
    this length, `scaled` with its scores multiplied by a power of ln L'/ln L, and `retrained` the risk of the best head
    for this length. `infinite_factor` is the best factor for an infinite prompt, 1/(bu) with A = uI.
    """

    trained: int
    used: Float[np.ndarray, " n"]
    retrained: Float[np.ndarray, " n"]
    unchanged: Float[np.ndarray, " n"]
    best_scaled: Float[np.ndarray, " n"]
    factor: Float[np.ndarray, " n"]
    scaled: Mapping[float, Float[np.ndarray, " n"]]
    infinite_factor: float


@dataclass(frozen=True)
class Trial:
    """Risks of a head trained at one length and used at another: `drawn` by simulation, and `exact`.

    `at_training` is its exact risk at the length of training, `retrained` that of the best head at the length of use.
    """

    trained: int
    used: int
    drawn: float
    std_error: float
    exact: float
    at_training: float
    retrained: float


def task_of(dimension: int) -> LinearRegression:
    """Return the task with isotropic covariates and tasks and without label noise."""
    return LinearRegression(np.eye(dimension))


@lru_cache
def best_head(dimension: int, length: int) -> Blocks:
    """Return the head of least risk at one length, with A a multiple of the identity."""
    return Blocks.best(task_of(dimension), float(np.log(length)), queries=QueryAverage.radial(dimension))


def scale_scores(head: Blocks, factor: float) -> Blocks:
    """Return the head with its scores multiplied by a factor."""
    return Blocks(factor * head.matrix, head.gain)


def risk(head: Blocks, length: int) -> float:
    """Return the exact risk of a head on prompts of any length."""
    dimension = head.matrix.shape[-1]
    return float(_risk(task_of(dimension), head, ScoreTable.at(float(np.log(length))), QueryAverage.radial(dimension)))


_risk = jax.jit(block_risk)


def best_factor(head: Blocks, length: int) -> tuple[float, float]:
    """Return the factor on the scores with the least risk, and this risk."""
    minimum = scipy.optimize.minimize_scalar(
        lambda log_factor: np.log(risk(scale_scores(head, np.exp(log_factor)), length)),
        bounds=(-WIDEST, WIDEST),
        method="bounded",
        options={"xatol": 1e-8},
    )
    return float(np.exp(minimum.x)), float(np.exp(minimum.fun))


def solve_risks(dimension: int, trained: int, used: list[int]) -> Risks:
    """Return the risks, at every length of use, of the head trained at one length."""
    ScoreTable.at_each(np.log([trained, *used]))  # computed together; `risk` and `best_head` read the cache
    head = best_head(dimension, trained)
    factors = np.asarray([best_factor(head, length) for length in used])
    scaled = {
        power: np.asarray([risk(scale_scores(head, (np.log(L) / np.log(trained)) ** power), L) for L in used])
        for power in (ROOT_POWER, FULL_POWER)
    }
    return Risks(
        trained,
        np.asarray(used),
        np.asarray([risk(best_head(dimension, length), length) for length in used]),
        np.asarray([risk(head, length) for length in used]),
        factors[:, 1],
        factors[:, 0],
        scaled,
        float(1 / (head.gain * head.matrix[0, 0])),
    )


def simulate_risks(dimension: int, prompts: int, *, key: PRNGKeyArray) -> list[Trial]:
    """Return simulated and exact risks for every pair (L, L') of `PAIRS`."""
    trials = []
    for index, (trained, used) in enumerate(PAIRS):
        head = best_head(dimension, trained)
        errors = half_squared_errors(head, used, prompts, key=jr.fold_in(key, index))
        drawn, error = float(errors.mean()), float(standard_error(errors))
        best = risk(best_head(dimension, used), used)
        trials.append(Trial(trained, used, drawn, error, risk(head, used), risk(head, trained), best))
    return trials


def half_squared_errors(head: Blocks, length: int, prompts: int, *, key: PRNGKeyArray) -> Float[np.ndarray, " n"]:
    """Return `½(ŷ - y)²` of softmax attention on simulated prompts, by an independent implementation in NumPy."""
    random, matrix, gain = generator(key), np.asarray(head.matrix), float(head.gain)
    parts = []
    for _ in range(-(-prompts // BATCH)):
        covariates = random.standard_normal((BATCH, length, len(matrix)))
        queries, tasks = random.standard_normal((2, BATCH, len(matrix)))
        scores = np.einsum("nli,ij,nj->nl", covariates, matrix, queries, optimize=True)
        labels = np.einsum("nli,ni->nl", covariates, tasks)
        outputs = gain * np.sum(softmax(scores, axis=1) * labels, axis=1)
        parts.append(0.5 * (outputs - np.sum(queries * tasks, axis=1)) ** 2)
    return np.concatenate(parts)[:prompts]
