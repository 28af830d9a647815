"""The risk after infinite time as a function of the length, by search along the valley of heads."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from chapters.icl_finite.isotropic_risk import QueryLengths
from lib.icl import ScoreTable

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
        queries = QueryLengths.of_dimension(d)
        for log_length, scores in zip(log_lengths, ScoreTable.at_each(log_lengths), strict=True):
            result = minimize_scalar(
                lambda log_u, *fixed: float(_log_risks(log_u, *fixed)[0]),
                args=(scores, queries),
                bounds=(np.log(SMALLEST), np.log(LARGEST)),
                method="bounded",
                options={"xatol": 1e-8},
            )
            # A* = uI with u = d^(-1/4), and b* = 1/u
            at_limit = _log_risks(-np.log(d) / 4, scores, queries)[1]
            risks.append(FinalRisk(d, log_length, *np.exp([result.fun, float(at_limit)]).tolist()))  # pyright: ignore
    return risks


@jax.jit
def _log_risks(
    log_u: Float[Array, ""], scores: ScoreTable, queries: QueryLengths
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return ln of the risks of A = uI at its best gain and at the gain 1/u.

    At the gain (1 + s)/u the `isotropic_risk` is quadratic in s. A risk of 1e-20 keeps its digits, which a polynomial
    in the gain would lose.
    """
    u = jnp.exp(log_u)
    size, shared, error = queries.means(u, scores)
    at_inverse = error / u**2
    gained = (at_inverse - shared) ** 2 / (size - 2 * shared + at_inverse)
    return jnp.log(0.5 * (at_inverse - gained)), jnp.log(0.5 * at_inverse)
