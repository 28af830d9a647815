"""One head and two opposite ones on the same simulated prompts, and what theory there is of both."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from lib.attention import attend
from lib.batching import tabulate
from lib.icl import LinearRegression, best_gain, block_attention, radial_average, score_table
from lib.measures import Empirical

# How many numbers one batch of prompts may hold.
TOGETHER = 2**20


class Keys(NamedTuple):
    """For the simulated prompts, and for the starts of searches over all heads."""

    prompts: PRNGKeyArray
    searches: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed)))


@dataclass(frozen=True)
class Answers:
    """To the same prompts, before any gain: of one head and of half of it with half of its opposite; and the labels."""

    length: int
    tilts: Float[np.ndarray, " tilts"]
    one: Float[np.ndarray, "tilts prompts"]
    two: Float[np.ndarray, "tilts prompts"]
    targets: Float[np.ndarray, " prompts"]

    def best_gain_errors(self, answers: Float[np.ndarray, "tilts prompts"]) -> Float[np.ndarray, "tilts prompts"]:
        """Square errors at the gain best on these prompts, whose choice moves their mean to second order only."""
        gains = (answers @ self.targets) / np.sum(answers**2, axis=1)
        return (gains[:, None] * answers - self.targets) ** 2


@dataclass(frozen=True)
class Theory:
    """2R·L at the best gain, along u: one head, two opposite heads by their law, and the best linear head's."""

    tilts: Float[np.ndarray, " tilts"]
    one_exact: Float[np.ndarray, " tilts"]
    two_law: Float[np.ndarray, " tilts"]
    linear: float


def simulate(length: int, tilts: Sequence[float], prompts: int, *, key: PRNGKeyArray) -> Answers:
    """Answers of the head A = uI, b = 1 and of half of it with half of its opposite, for each u; and the labels.

    In single precision, like training; averages are taken in double.
    """
    tilts = np.asarray(sorted(tilts))
    one, zero = jnp.ones((), jnp.float32), jnp.zeros((), jnp.float32)
    task = LinearRegression(np.eye(DIMENSION, dtype=np.float32), task_scale=one, noise_std=zero)
    matrices = jnp.asarray(tilts, jnp.float32)[:, None, None] * jnp.eye(DIMENSION, dtype=jnp.float32)

    def answers(tokens, query):
        def answer(matrix):
            ahead, behind = (
                attend(block_attention(sign * matrix, sign), Empirical(tokens), query)[0] for sign in (1.0, -1.0)
            )
            return ahead, (ahead + behind) / 2

        return jax.vmap(answer)(matrices)

    batch = max(1, min(prompts, TOGETHER // length))

    def draw_batch(key):
        drawn = task.draw(length, batch, key=key)
        return *jax.vmap(answers)(drawn.tokens, drawn.queries), drawn.targets

    batches = jax.jit(lambda keys: jax.lax.map(draw_batch, keys))(jr.split(key, -(-prompts // batch)))
    one, two, targets = (np.concatenate(np.asarray(part, np.float64)) for part in batches)
    return Answers(length, tilts, one.T, two.T, targets)


def predict(length: int, tilts: Sequence[float]) -> Theory:
    """What theory there is, at the `tilts` and on a fine grid between the smallest and the largest."""
    task, scores, queries = LinearRegression(np.eye(DIMENSION)), score_table(np.log(length)), radial_average(DIMENSION)

    def least(tilt):
        return best_gain(task, tilt * jnp.eye(DIMENSION), scores, queries, near=1 / tilt)[1]

    grid = np.unique([*tilts, *np.geomspace(min(tilts), max(tilts), 40)])
    return Theory(
        tilts=grid,
        one_exact=2 * length * tabulate(jax.vmap(least), grid),
        two_law=np.asarray(shrunken(opposite_law(grid**2, DIMENSION), length)),
        linear=2 * length * float(task.linear_attention_risk(length)),
    )


def opposite_law(squared_tilt: np.ndarray | float, dimension: int) -> np.ndarray | float:
    """`lim 2R_L L` of two opposite heads with bu = 1: `E[(d/s) sinh(s|x|²) + |x|² cosh(s|x|²)]`, s = u² < ½.

    Their fluctuations have correlation: by the delta method the variance of half the difference is
    ⟨v, Γv⟩ sinh τ² + ⟨v, Γξ⟩² cosh τ², where one head has (⟨v, Γv⟩ + ⟨v, Γξ⟩²) e^{τ²}.
    """
    more, less = 1 - 2 * squared_tilt, 1 + 2 * squared_tilt
    first = (more ** (-dimension / 2) - less ** (-dimension / 2)) / (2 * squared_tilt)
    second = (more ** (-dimension / 2 - 1) + less ** (-dimension / 2 - 1)) / 2
    return dimension * (first + second)


def shrunken(law: np.ndarray | float, length: int) -> np.ndarray | float:
    """2R·L at the best gain of an unbiased answer whose error has variance law/L: d V/(d + V) in place of V."""
    return law / (1 + law / (DIMENSION * length))
