"""Plain Gaussian prompts, drawn token by token, for comparison with the exact theory."""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.attention import Attention, attend
from lib.batching import map_batched
from lib.finite_prompt import QueryRay
from lib.measures import Gaussian, empirical


def query_ray() -> QueryRay:
    """Return a head and three-dimensional Gaussian tokens without symmetry: tokens have a mean and U is not square."""
    params = Attention([[0.8, -0.3], [0.1, 0.6], [0.4, 0.5]], [[1.0, 0.4, -0.2], [-0.3, 0.9, 0.5]])
    gaussian = Gaussian([0.4, -0.2, 0.1], [[0.9, 0.3, 0.1], [0.3, 1.1, -0.4], [0.1, -0.4, 0.7]])
    return QueryRay.through(params, gaussian, jnp.asarray([1.0, 0.7]))


# Outputs of simulated prompts by prompt length.
OutputsByLength = Mapping[int, Float[np.ndarray, "prompts taus e"]]


def simulate_by_length(
    ray: QueryRay, taus: list[float], counts: Mapping[int, int], *, key: PRNGKeyArray
) -> OutputsByLength:
    """Return the outputs of `counts[length]` plain prompts of each length, for one query of each size."""
    return {
        length: simulate_prompts(ray, taus, length, count, key=jr.fold_in(key, length))
        for length, count in counts.items()
    }


def simulate_prompts(
    ray: QueryRay, taus: list[float], length: int, prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "prompts taus e"]:
    """Return the outputs of plain prompts, for one query of each size per prompt."""

    def one_prompt(index):
        prompt = empirical(ray.gaussian, length, key=jr.fold_in(key, index))
        return jax.lax.map(partial(attend, ray.params, prompt), ray.queries(taus))

    return np.asarray(map_batched(one_prompt, jnp.arange(prompts), size=length * ray.gaussian.dimension))
