"""Tilts and their tilted means, matched at the least cost: the gradient of Λ is an optimal-transport map."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import query_law, two_clusters
from companion import Alternative, Claim
from lib.finite_prompt import QueryRay
from lib.measures import tilted_mean

# Pairs of a tilt and a tilted mean that are matched optimally.
MATCHED = 400


class Matching(NamedTuple):
    """Shares of the pairs (first point, second point) that are kept when the points are matched at the least cost."""

    tilts: float
    """Share kept when tilts Uz are matched with their tilted means ∇Λ(Uz)."""
    queries: float
    """Share kept when queries z are matched with the same tilted means."""


def match(ray: QueryRay, *, key: PRNGKeyArray) -> Matching:
    """Match queries, and their tilts, with the tilted means of a mixture of two Gaussians."""
    from scipy.optimize import linear_sum_assignment  # only this function needs it

    queries = np.asarray(query_law().sample(MATCHED, key=jr.fold_in(key, MATCHED)))
    tilts = queries @ np.asarray(ray.params.bilinear).T
    means = np.asarray(jax.vmap(partial(tilted_mean, two_clusters(ray.gaussian)))(jnp.asarray(tilts)))

    def kept(points: Float[np.ndarray, "n d"]) -> float:
        costs = np.sum((points[:, None] - means[None]) ** 2, axis=2)
        first, second = linear_sum_assignment(costs)
        return float(np.mean(first == second))

    return Matching(kept(tilts), kept(queries))


def transport_claim(matching: Matching) -> Claim:
    """∇Λ maps tilts to tilted means at the least cost, whatever the tokens."""
    return Claim(
        id="gaussian-limit-transport",
        statement=(
            "Matched at the least mean square distance, tilts Uz and the tilted means ∇Λ(Uz) of a mixture of two "
            f"Gaussians stay with their partners: the share of {MATCHED} pairs that do."
        ),
        source="derived here",
        box="optimal-transport",
        measured=matching.tilts,
        expected=1.0,
        tolerance=0.0,
        alternative=Alternative("the queries z themselves were matched with ∇Λ(Uz)", matching.queries),
    )
