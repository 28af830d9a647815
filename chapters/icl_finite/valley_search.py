"""What length buys, without following a flow: the risk after infinite time, by search along the valley of heads."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from lib.icl import (
    LinearRegression,
    QueryAverage,
    ScoreTable,
    best_gain,
    block_risk,
    infinite_limit,
    radial_average,
    score_table,
)

# Where the u of A = uI is searched.
SMALLEST, LARGEST = 0.02, 2.0


class Price(NamedTuple):
    """What one length buys in one dimension: the risk after training to the end, and that at (A*, b*)."""

    dimension: int
    log_length: float
    trained: float
    at_limit: float


def dense(log_lengths: list[float], longest: float) -> list[float]:
    """These ln L, and between the least of them and `longest` as many as make a curve."""
    return sorted({*log_lengths, *np.linspace(min(log_lengths), longest, 14)[1:-1].tolist()})


def least_risks(dimensions: list[int], log_lengths: list[float]) -> list[Price]:
    """Risk after training to the end, and at the limit (A*, b*) of the infinite flow, for Σ = I."""
    prices = []
    for d in dimensions:
        task, queries = LinearRegression(np.eye(d)), radial_average(d)
        for log_length in log_lengths:
            scores = score_table(log_length)
            found = minimize_scalar(
                lambda log_u, *fixed: float(_log_risk(log_u, *fixed)),
                args=(task, scores, queries),
                bounds=(np.log(SMALLEST), np.log(LARGEST)),
                method="bounded",
                options={"xatol": 1e-8},
            )
            at_limit = _risk(task, infinite_limit(task), scores, queries)
            prices.append(Price(d, log_length, float(np.exp(found.fun)), float(at_limit)))  # pyright: ignore
    return prices


@jax.jit
def _log_risk(
    log_u: Float[Array, ""], task: LinearRegression, scores: ScoreTable, queries: QueryAverage
) -> Float[Array, ""]:
    """Of A = uI at its best gain, which is near 1/u."""
    u = jnp.exp(log_u)
    return jnp.log(best_gain(task, u * jnp.eye(task.dimension), scores, queries, near=1 / u)[1])


_risk = jax.jit(block_risk)
