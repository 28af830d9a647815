"""The risk after infinite time as a function of the length, by search along the valley of heads."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk

# Smallest and largest u of A = uI in the search.
SMALLEST, LARGEST = 0.02, 12.0


class FinalRisk(NamedTuple):
    """The risk after training to the end, and the risk at (A*, b*), for one dimension and length."""

    dimension: int
    log_length: float
    trained: float
    at_limit: float


def dense_log_lengths(log_lengths: list[float], longest: float) -> list[float]:
    """Return `log_lengths` with further values between the smallest of them and `longest`, for a smooth curve."""
    return sorted({*log_lengths, *np.linspace(min(log_lengths), longest, 14)[1:-1].tolist()})


def solve_final_risks(dimensions: list[int], log_lengths: list[float]) -> list[FinalRisk]:
    """Return the least risks of heads A = uI, and the risks at (A*, b*), for Σ = I."""
    risks = []
    for d in dimensions:
        task, queries = LinearRegression(np.eye(d)), QueryAverage.radial(d)
        for log_length in log_lengths:
            scores = ScoreTable.at(log_length)
            result = minimize_scalar(
                lambda log_u, *fixed: float(_log_risk(log_u, *fixed)),
                args=(task, scores, queries),
                bounds=(np.log(SMALLEST), np.log(LARGEST)),
                method="bounded",
                options={"xatol": 1e-8},
            )
            at_limit = _risk(task, Blocks.infinite_limit(task), scores, queries)
            risks.append(FinalRisk(d, log_length, float(np.exp(result.fun)), float(at_limit)))  # pyright: ignore
    return risks


@jax.jit
def _log_risk(
    log_u: Float[Array, ""], task: LinearRegression, scores: ScoreTable, queries: QueryAverage
) -> Float[Array, ""]:
    """Return ln of the risk of A = uI at its best gain, which is near 1/u.

    The risk is quadratic in the gain, so that its slopes at 1/u and 2/u give the best one. A risk of 1e-20 keeps its
    digits, which its value at the gain 0 would lose.
    """
    u = jnp.exp(log_u)

    def risk(shift):
        blocks = Blocks(u * jnp.eye(task.dimension), (1 + shift) * (1 / u))
        return block_risk(task, blocks, scores, queries)

    (risk_near, _), (slope, slope_at_twice) = jax.vmap(jax.value_and_grad(risk))(jnp.asarray([0.0, 1.0]))
    return jnp.log(risk_near - slope**2 / (2 * (slope_at_twice - slope)))


_risk = jax.jit(block_risk)
