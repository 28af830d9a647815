"""The largest distance between finite and infinite risk over all heads in a ball, by search.

Two families. Block heads in the plane: all of A and b. And all heads on the line: in U and V there are four numbers
that the answer sees, the weights a, c of the query's covariate in the scores of covariate and label, and v, b.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from lib.attention import Attention
from lib.icl import LinearRegression, PairAverage, block_attention, line_average, line_head, score_table
from lib.icl.averages import few_radii, radial

# A radius that grows with the length: where the largest of L standard normals lies.
GROWING = "√(2 ln L)"


@dataclass(frozen=True)
class Family:
    """Heads of one kind, as points of a space; the lengths at which they are searched, and where searches begin."""

    name: str
    dimension: int
    head: Callable[[Float[Array, " n"]], Attention]
    average: PairAverage
    begins: list[list[float]]


class Farthest(NamedTuple):
    """The largest |R_L - R_∞| found in a ball of heads, `radius` its radius and `rule` the radius as tables name it."""

    family: str
    rule: str
    radius: float
    log_length: float
    gap: float


def _on_the_plane(rays: int, radii: int) -> PairAverage:
    """Rays at equal angles, and tasks for what is quadratic in them."""
    angles = np.pi * (np.arange(rays) + 0.5) / rays
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    frames = np.broadcast_to(np.eye(2), (rays, 2, 2))
    return PairAverage(*map(jnp.asarray, (directions, frames, *radial(2, radii), *few_radii(2, 1))))


def _plane(point: Float[Array, "5"]) -> Attention:
    return block_attention(point[:4].reshape(2, 2), point[4])


def families() -> tuple[Family, Family]:
    """Block heads in the plane, whose average over tasks is closed, and all heads on the line."""
    # toward one axis or all, with either sign; a little off the symmetric heads, which are saddles
    begins = [[-2, 0.1, -0.1, -0.1, 2], [-2, 0.1, -0.1, -2, 2], [2, 0.1, 0.1, 0.1, 2], [2, 0.1, -0.1, 2, 2]]
    plane = Family("block heads, d = 2", 2, _plane, _on_the_plane(32, 48), begins)
    begins = [[-2, 0.1, 0.1, 2], [0.1, 2, 2, 0.1], [0.1, 2, -2, 0.1], [1, -2, 0.2, 2]]
    return plane, Family("all heads, d = 1", 1, line_head, line_average(48), begins)


def simulate(radii: list[float], block_log_lengths: list[float], all_log_lengths: list[float]) -> list[Farthest]:
    """For each family the supremum over balls of fixed `radii`, and, at both ends, over balls that grow."""
    plane, line = families()
    return [
        *_suprema(plane, sorted(radii), sorted(block_log_lengths)),
        *_suprema(line, sorted(radii), sorted(all_log_lengths)),
    ]


def _suprema(family: Family, radii: list[float], log_lengths: list[float]) -> list[Farthest]:
    task = LinearRegression(np.eye(family.dimension))

    @jax.jit
    def misfit(point, radius, scores):
        """-ln |R_L - R_∞| at a point of the ball, given by one of space; the logarithm, for gaps of any size."""

        def of(point):
            inside = radius * point / jnp.sqrt(1 + point @ point)
            gap = task.risk_gap(family.head(inside), scores, family.average)
            return -0.5 * jnp.log(gap**2 + jnp.finfo(float).tiny)

        return jax.value_and_grad(of)(point)

    def search(radius, log_length, begins):
        def objective(point):
            value, slope = misfit(point, radius, score_table(log_length))
            return float(value), np.asarray(slope)

        found = [minimize(objective, begin, jac=True, method="BFGS", options={"gtol": 1e-4}) for begin in begins]
        best = min(found, key=lambda end: end.fun)
        return float(np.exp(-best.fun)), [best.x]

    rows = []
    for radius in radii:
        # from every begin at the shortest length, then from the best head of the length before
        begins = [np.asarray(begin, float) for begin in family.begins]
        for ell in log_lengths:
            gap, begins = search(radius, ell, begins)
            rows.append(Farthest(family.name, f"{radius:g}", radius, ell, gap))
    for ell in (log_lengths[0], log_lengths[-1]):
        radius = float(np.sqrt(2 * ell))
        # one search bounds this supremum from below
        gap, _ = search(radius, ell, [np.asarray(family.begins[0], float)])
        rows.append(Farthest(family.name, GROWING, radius, ell, gap))
    return rows
