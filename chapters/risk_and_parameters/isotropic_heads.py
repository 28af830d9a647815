"""Heads A = uI with gain b: their exact risk on finite prompts, and the head of least risk."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk

# Dimension of the covariates in the flows and in the simulation of two heads.
DIMENSION = 5
# Length at which the price of one head is compared with its limit.
LONG = 10**8


@partial(jax.jit, static_argnums=0)
def _risk_and_slope(dimension: int, point: Float[Array, "2"], scores: ScoreTable, queries: QueryAverage):
    task = LinearRegression(jnp.eye(dimension))

    def risk(point):
        norm, gain = point
        return block_risk(task, Blocks.isotropic(dimension, norm, gain), scores, queries)

    return jax.value_and_grad(risk)(point)


def exact_risk(dimension: int, length: int) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return the function `(‖A‖, b) ↦ R_L` with its gradient, compiled once per dimension."""
    scores, queries = ScoreTable.at(float(np.log(length))), QueryAverage.radial(dimension)

    def evaluate(point):
        value, slope = _risk_and_slope(dimension, jnp.asarray(point), scores, queries)
        return float(value), np.asarray(slope)

    return evaluate


@dataclass(frozen=True)
class BestHead:
    """The head of least risk found from one start, and its risk over that of the best linear head."""

    dimension: int
    length: int
    tilt: float
    gain: float
    ratio: float


def best_heads(dimension: int, length: int) -> list[BestHead]:
    """Minimise the exact risk over (u, b) from three starts on the curve bu = 1; return the minimum of each search."""
    evaluate = exact_risk(dimension, length)

    def log_risk(logarithms):
        # the logarithm of the risk, because a risk of 1e-8 has tiny gradients long before its minimum
        point = np.exp(logarithms)
        value, slope = evaluate(point)
        # a line search may try heads so large that their risk is lost in rounding errors: it steps back from infinity
        return (np.log(value), point * slope / value) if value > 0 else (np.inf, np.zeros(2))

    linear = float(LinearRegression(jnp.eye(dimension)).linear_attention_risk(length))
    best = []
    for tilt in (0.1 * dimension**-0.5, dimension**-0.5, dimension**-0.25):
        start = np.log([tilt * dimension**0.5, 1 / tilt])
        search = minimize(log_risk, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        norm, gain = np.exp(search.x)
        best.append(BestHead(dimension, length, norm / dimension**0.5, gain, float(np.exp(search.fun)) / linear))
    return best


def solve_best_heads(dimensions: Iterable[int], lengths: Iterable[int]) -> list[BestHead]:
    """Return the best head from each start, in each dimension, at each length and at `LONG`."""
    return [
        head
        for dimension in sorted(set(dimensions))
        for length in sorted({*lengths, LONG})
        for head in best_heads(dimension, length)
    ]
