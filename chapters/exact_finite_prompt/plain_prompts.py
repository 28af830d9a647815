"""Plain Gaussian prompts, token by token: what the exact theory is compared with."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.attention import Attention, attend
from lib.measures import Gaussian, empirical

# How many numbers one batch of prompts may hold.
TOGETHER = 2**16


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    prompts: PRNGKeyArray
    samplers: PRNGKeyArray
    probes: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


@dataclass(frozen=True)
class Scene:
    """One head on three-dimensional Gaussian tokens, and queries `τ · direction` with `‖Γ^{1/2} U direction‖ = 1`."""

    params: Attention
    gaussian: Gaussian
    direction: Float[Array, " d"]

    @classmethod
    def fixed(cls) -> "Scene":
        """Nothing symmetric, nothing centred; U is not square."""
        params = Attention([[0.8, -0.3], [0.1, 0.6], [0.4, 0.5]], [[1.0, 0.4, -0.2], [-0.3, 0.9, 0.5]])
        gaussian = Gaussian([0.4, -0.2, 0.1], [[0.9, 0.3, 0.1], [0.3, 1.1, -0.4], [0.1, -0.4, 0.7]])
        direction = jnp.asarray([1.0, 0.7])
        tilt = params.bilinear @ direction
        return cls(params, gaussian, direction / jnp.sqrt(tilt @ gaussian.cov @ tilt))


# Outputs of simulated prompts, by their length.
ByLength = Mapping[int, Float[np.ndarray, "prompts taus e"]]


def simulate_lengths(scene: Scene, taus: list[float], counts: Mapping[int, int], *, key: PRNGKeyArray) -> ByLength:
    """By length: outputs of that many plain prompts as `counts` says, each asked one query of each size."""
    return {
        length: simulate(scene, taus, length, count, key=jr.fold_in(key, length)) for length, count in counts.items()
    }


def simulate(
    scene: Scene, taus: list[float], length: int, prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "prompts taus e"]:
    """Outputs of plain prompts; every prompt is asked one query of each size."""
    queries = jnp.asarray(taus)[:, None] * scene.direction

    def one_prompt(index):
        prompt = empirical(scene.gaussian, length, key=jr.fold_in(key, index))
        return jax.lax.map(partial(attend, scene.params, prompt), queries)

    batch_size = max(1, min(prompts, TOGETHER // (3 * length)))
    outputs = jax.jit(partial(jax.lax.map, one_prompt, batch_size=batch_size))(
        jnp.arange(-(-prompts // batch_size) * batch_size)
    )
    return np.asarray(outputs)[:prompts]
