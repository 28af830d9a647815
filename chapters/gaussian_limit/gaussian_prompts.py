"""Finite Gaussian prompts, each asked the same growing queries."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.batches import map_indices, map_queries
from chapters.gaussian_limit.parameters import ENOUGH_PROMPTS
from lib.attention import Attention, attend
from lib.measures import Empirical, Gaussian, empirical
from lib.statistics import standard_error


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    lemma: PRNGKeyArray
    response: PRNGKeyArray
    rate: PRNGKeyArray
    measures: PRNGKeyArray
    laplace: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


@dataclass(frozen=True)
class Scene:
    """One head, one Gaussian, and queries `τ · direction` with `‖Γ^{1/2} U direction‖ = 1`.

    `reading` is the component along the lemma's line: `⟨reading, V(m + ΓU τ direction) - Vm⟩ = τ`.
    """

    params: Attention
    gaussian: Gaussian
    direction: Float[Array, " d"]
    reading: Float[Array, " e"]

    @classmethod
    def fixed(cls) -> "Scene":
        """Three dimensions, two outputs, nothing symmetric, nothing centred."""
        params = Attention([[0.9, 0.3, -0.2], [-0.4, 0.7, 0.1], [0.2, 0.1, 0.8]], [[1.0, 0.5, -0.3], [-0.2, 0.8, 0.6]])
        gaussian = Gaussian([0.5, -0.3, 0.2], [[1.0, 0.4, -0.2], [0.4, 0.8, 0.3], [-0.2, 0.3, 0.6]])
        direction = jnp.asarray([1.0, 0.6, 0.3])
        tilt = params.bilinear @ direction
        direction /= jnp.sqrt(tilt @ gaussian.cov @ tilt)
        line = params.value @ gaussian.cov @ params.bilinear @ direction
        return cls(params, gaussian, direction, line / (line @ line))

    def read(self, output: Float[Array, "*n e"]) -> Float[Array, "*n"]:
        """Where on the lemma's line an output falls, in units of τ."""
        return (output - self.params.value @ self.gaussian.mean) @ self.reading


@dataclass(frozen=True)
class Responses:
    """Of prompts of one length: response and Σp² a prompt and a query, largest token a prompt."""

    taus: Float[np.ndarray, " queries"]
    response: Float[np.ndarray, "prompts queries"]
    participation: Float[np.ndarray, "prompts queries"]
    largest_token: Float[np.ndarray, " prompts"]


def query_sizes(largest: float, n: int) -> Float[Array, " queries"]:
    """`n` sizes τ from 0 to the largest."""
    return jnp.linspace(0.0, largest, n)


def respond(
    scene: Scene, taus: Float[Array, " queries"], counts: Mapping[int, int], *, key: PRNGKeyArray
) -> dict[int, Responses]:
    """By length: that many prompts as `counts` says, each asked all queries."""
    return {
        length: _respond(scene, taus, length, count, key=jr.fold_in(key, length)) for length, count in counts.items()
    }


def _respond(
    scene: Scene, taus: Float[Array, " queries"], length: int, prompts: int, *, key: PRNGKeyArray
) -> Responses:
    """Prompts of `length` Gaussian tokens, each asked all queries; memory stays near one long prompt's."""

    def one_prompt(index):
        prompt = empirical(scene.gaussian, length, key=jr.fold_in(key, index))

        def one_query(tau):
            output = attend(scene.params, prompt, tau * scene.direction)
            return scene.read(output), participation(scene.params, prompt, tau * scene.direction)

        largest = jnp.max(scene.read(prompt.points @ scene.params.value.T))
        return *map_queries(one_query, taus, length), largest

    return Responses(np.asarray(taus), *map_indices(one_prompt, prompts, length * taus.size))


def participation(params: Attention, prompt: Empirical, query: Float[Array, " d"]) -> Float[Array, ""]:
    """`Σ p_i²` of the softmax weights: `e^{Λ(2ξ) - 2Λ(ξ)} / L` for a prompt of L tokens, in [1/L, 1]."""
    tilt = params.bilinear @ query
    return jnp.exp(prompt.log_mgf(2 * tilt) - 2 * prompt.log_mgf(tilt)) / prompt.points.shape[0]


def well_sampled(responses: Mapping[int, Responses]) -> dict[int, Responses]:
    """The lengths with prompts enough to test; the budget of tokens leaves at least one."""
    return {length: these for length, these in responses.items() if len(these.response) >= ENOUGH_PROMPTS}


def worst_deviation(samples: Float[np.ndarray, "n k"]) -> float:
    """The largest distance of a mean from zero, over k means, in standard errors."""
    return float(np.max(np.abs(samples.mean(axis=0)) / standard_error(samples)))
