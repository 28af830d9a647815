"""The largest distance between finite and infinite risk over all heads in a ball, by search.

There are two families of heads: block heads in the plane, with all entries of A and b, and all heads on the line. On
the line the output depends on four numbers in U and V: the weights a, c of covariate and label in the scores, and the
weights v, b of covariate and label in the value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from chapters import UNOPTIMISED
from chapters.icl_finite.isotropic_risk import radial
from lib.icl import ScoreTable

# Name of the radius that grows with the length, like the largest of L standard normals.
GROWING = "√(2 ln L)"


@dataclass(frozen=True)
class Family:
    """A family of heads, parametrised by points of R^n: R_L - R_∞ at a point, and the starting points of the search."""

    name: str
    gap: Callable[[Float[Array, " n"], ScoreTable], Float[Array, ""]]
    starts: list[list[float]]


class Farthest(NamedTuple):
    """The largest |R_L - R_∞| that the search finds in a ball of heads; `rule` names the radius in tables."""

    family: str
    rule: str
    radius: float
    log_length: float
    gap: float


# Rays at equal angles and radii of the queries in the plane, and radii on the line.
_RAYS, _RADII = 32, 48


def _plane_gap(point: Float[Array, "5"], scores: ScoreTable) -> Float[Array, ""]:
    """Return R_L - R_∞ of a block head, `½ E[2P ⟨bAx, x - bAx⟩ + b² (Q + (d - 1) P)]` for Σ = I and d = 2."""
    matrix, gain = point[:4].reshape(2, 2), point[4]
    angles = np.pi * (np.arange(_RAYS) + 0.5) / _RAYS
    radii, weights = radial(2, _RADII)

    def given_query(query):
        tilt = matrix @ query
        statistics, predicted = scores.statistics(tilt @ tilt), gain * tilt
        p, q = statistics.participation, statistics.score_error
        return p * (predicted @ (query - predicted)) + 0.5 * gain**2 * (q + p)

    queries = np.stack([np.outer(radii, np.cos(angles)), np.outer(radii, np.sin(angles))], axis=-1)
    return jnp.asarray(weights) @ jnp.mean(jax.vmap(jax.vmap(given_query))(queries), axis=1)


def _line_gap(point: Float[Array, "4"], scores: ScoreTable) -> Float[Array, ""]:
    """Return R_L - R_∞ of a head for d = 1, `½ E[2Py(xw - y) + Qu²]` with u = v + bw and y = u(a + cw)x.

    The mean is over the query x and the task w; P and Q are taken at τ = |a + cw||x|.
    """
    a, c, v, b = point
    radii, weights = radial(1, _RADII)

    def given_pair(query, task):
        tilt, value = (a + c * task) * query, v + b * task
        statistics, predicted = scores.statistics(tilt**2), tilt * value
        p, q = statistics.participation, statistics.score_error
        return p * predicted * (query * task - predicted) + 0.5 * q * value**2

    tasks, task_weights = np.append(radii, -radii), np.tile(weights / 2, 2)
    gaps = jax.vmap(jax.vmap(given_pair, (None, 0)), (0, None))(radii, tasks)
    return weights @ gaps @ task_weights


def families() -> tuple[Family, Family]:
    """Return block heads in the plane, whose average over tasks has a closed form, and all heads on the line."""
    # along one axis or all axes, with both signs, slightly away from the symmetric heads, which are saddles
    plane = [[-2, 0.1, -0.1, -0.1, 2], [-2, 0.1, -0.1, -2, 2], [2, 0.1, 0.1, 0.1, 2], [2, 0.1, -0.1, 2, 2]]
    line = [[-2, 0.1, 0.1, 2], [0.1, 2, 2, 0.1], [0.1, 2, -2, 0.1], [1, -2, 0.2, 2]]
    return Family("block heads, d = 2", _plane_gap, plane), Family("all heads, d = 1", _line_gap, line)


def solve_largest_gaps(
    radii: list[float], block_log_lengths: list[float], all_log_lengths: list[float]
) -> list[Farthest]:
    """Return the suprema of each family over balls of fixed `radii` and, at the extreme lengths, over growing ones."""
    plane, line = families()
    return [
        *_suprema(plane, sorted(radii), sorted(block_log_lengths)),
        *_suprema(line, sorted(radii), sorted(all_log_lengths)),
    ]


def _suprema(family: Family, radii: list[float], log_lengths: list[float]) -> list[Farthest]:
    """Return the suprema of one family, by radius and length."""
    tables = dict(zip(log_lengths, ScoreTable.at_each(log_lengths), strict=True))

    @partial(jax.jit, compiler_options=UNOPTIMISED)
    def log_gap(point, radius, scores):
        """Return -ln |R_L - R_∞| and its gradient; `point` in R^n is mapped into the ball."""

        def objective(point):
            inside = radius * point / jnp.sqrt(1 + point @ point)
            gap = family.gap(inside, scores)
            return -0.5 * jnp.log(gap**2 + jnp.finfo(float).tiny)

        return jax.value_and_grad(objective)(point)

    def search(radius, log_length, starts):
        def objective(point):
            value, slope = log_gap(point, radius, tables[log_length])
            return float(value), np.asarray(slope)

        results = [minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-4}) for start in starts]
        best = min(results, key=lambda result: result.fun)
        return float(np.exp(-best.fun)), [best.x]

    rows = []
    for radius in radii:
        # from every start at the shortest length, then from the best head of the previous length
        starts = [np.asarray(start, float) for start in family.starts]
        for ell in log_lengths:
            gap, starts = search(radius, ell, starts)
            rows.append(Farthest(family.name, f"{radius:g}", radius, ell, gap))
    for ell in (log_lengths[0], log_lengths[-1]):
        radius = float(np.sqrt(2 * ell))
        # a single search is enough for a lower bound of this supremum
        gap, _ = search(radius, ell, [np.asarray(family.starts[0], float)])
        rows.append(Farthest(family.name, GROWING, radius, ell, gap))
    return rows
