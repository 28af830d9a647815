"""Matching of tilts with tilted means at the least cost: the gradient of Λ is an optimal-transport map."""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import query_distribution, two_clusters
from lib.finite_prompt import QueryRay
from lib.measures import tilted_mean

# Number of pairs of a tilt and a tilted mean.
MATCHED = 400


class Matching(NamedTuple):
    """Fractions of pairs of points that stay together when the points are matched at the least cost."""

    tilts: float
    """The fraction for tilts Uz and their tilted means ∇Λ(Uz)."""
    queries: float
    """The fraction for queries z and the same tilted means."""


def solve_tilt_matching(ray: QueryRay, *, key: PRNGKeyArray) -> Matching:
    """Match queries, and their tilts, with the tilted means of a mixture of two Gaussians."""
    from scipy.optimize import linear_sum_assignment  # only this function needs it

    queries = np.asarray(query_distribution().sample(MATCHED, key=key))
    tilts = queries @ np.asarray(ray.params.bilinear).T
    means = np.asarray(jax.jit(jax.vmap(partial(tilted_mean, two_clusters(ray.gaussian))))(tilts))

    def fraction_kept(points: Float[np.ndarray, "n d"]) -> float:
        costs = np.sum((points[:, None] - means[None]) ** 2, axis=2)
        first, second = linear_sum_assignment(costs)
        return float(np.mean(first == second))

    return Matching(fraction_kept(tilts), fraction_kept(queries))
