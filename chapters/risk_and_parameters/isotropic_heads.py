"""Heads A = uI with gain b: their exact risk on finite prompts, and the head of least risk."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from lib.icl import LinearRegression, QueryAverage, ScoreTable

# Dimension of the covariates in the flows and in the simulation of two heads.
DIMENSION = 5
# Length at which the price of one head is compared with its limit.
LONG = 10**8


@jax.jit
def _risk_and_slope(
    point: Float[Array, "2"],
    dimension: Float[Array, ""],
    noise: Float[Array, ""],
    scores: ScoreTable,
    radii: tuple[Float[Array, " radii"], Float[Array, " radii"]],
):
    """Return `½ [d (1 - bu)² + 2 (1 - bu) bu E r²P(ur) + b² E (Q + (d - 1 + s²) P)(ur)]` and its gradient.

    The length r of the query has the nodes and weights `radii`; u = ‖A‖/√d.
    """
    nodes, weights = radii

    def risk(point):
        norm, gain = point
        tilt = norm / jnp.sqrt(dimension)
        of_radii = jax.vmap(scores.statistics)((tilt * nodes) ** 2)
        product, participation = gain * tilt, of_radii.participation
        shrinkage = weights @ (nodes**2 * participation)
        variance = weights @ (of_radii.score_error + (dimension - 1.0 + noise) * participation)
        return 0.5 * (
            dimension * (1.0 - product) ** 2 + 2.0 * (1.0 - product) * product * shrinkage + gain**2 * variance
        )

    return jax.value_and_grad(risk)(point)


def exact_risk(
    dimension: int, length: int, noise: float = 0.0
) -> Callable[[Float[np.ndarray, "2"]], tuple[float, Float[np.ndarray, "2"]]]:
    """Return the function `(‖A‖, b) ↦ R_L - ½s²` and its gradient, where s² is the variance `noise` of the labels.

    All dimensions, lengths and variances share one compiled program.
    """
    scores, queries = ScoreTable.at(float(np.log(length))), QueryAverage.radial(dimension)
    # the risk depends only on the length of the query, so that the nodes on one axis are enough
    radii = jnp.linalg.norm(queries.nodes[::dimension], axis=1), dimension * queries.weights[::dimension]

    def evaluate(point):
        value, slope = _risk_and_slope(point, np.float64(dimension), np.float64(noise), scores, radii)
        return float(value), np.asarray(slope)

    return evaluate


def log_risk(evaluate: Callable) -> Callable[[Float[np.ndarray, "2"]], tuple[float, Float[np.ndarray, "2"]]]:
    """Return the function `(ln ‖A‖, ln b) ↦ ln risk` and its gradient.

    Searches minimise the logarithm, because a risk of 1e-8 has tiny gradients long before its minimum.
    """

    def of_logarithms(logarithms):
        point = np.exp(logarithms)
        value, slope = evaluate(point)
        # a line search may try heads so large that their risk is lost in rounding errors: it steps back from infinity
        return (np.log(value), point * slope / value) if value > 0 else (np.inf, np.zeros(2))

    return of_logarithms


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
    objective = log_risk(exact_risk(dimension, length))
    linear = float(LinearRegression(jnp.eye(dimension)).linear_attention_risk(length))
    best = []
    for tilt in (0.1 * dimension**-0.5, dimension**-0.5, dimension**-0.25):
        start = np.log([tilt * dimension**0.5, 1 / tilt])
        search = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        norm, gain = np.exp(search.x)
        best.append(BestHead(dimension, length, norm / dimension**0.5, gain, float(np.exp(search.fun)) / linear))
    return best


def solve_best_heads(dimensions: Iterable[int], lengths: Iterable[int]) -> list[BestHead]:
    """Return the best head from each start, in each dimension, at each length and at `LONG`."""
    lengths = sorted({*lengths, LONG})
    ScoreTable.at_each(np.log(lengths))  # computed together; `exact_risk` reads them from the cache
    return [
        head for dimension in sorted(set(dimensions)) for length in lengths for head in best_heads(dimension, length)
    ]
