"""The gradient flow of the exact risk on prompts of L tokens, and of infinitely many.

For Σ = I and a start `A ∝ I` the exact dynamics have two numbers, ‖A‖_F and b.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib.finite_prompt import LARGEST_LOG_LENGTH
from lib.flow import gradient_flow
from lib.icl import Blocks, LinearRegression, ScoreTable, block_risk, radial_average, score_table

# e^330 tokens: P and Q are below 1e-100, which is what "infinite" means in float64.
INFINITE = LARGEST_LOG_LENGTH
RTOL = 1e-10


class Isotropic(eqx.Module):
    """The block head with `A = size · I/√d`, so that ‖A‖_F is its size: the flow in (size, gain) is that in (A, b)."""

    size: Float[Array, "*rows"]
    gain: Float[Array, "*rows"]

    def blocks(self, d: int) -> Blocks:
        """A and b."""
        return Blocks(self.size * jnp.eye(d) / d**0.5, self.gain)


@dataclass(frozen=True)
class Scene:
    """An isotropic task, and the scale of a balanced start."""

    task: LinearRegression
    alpha: float

    @classmethod
    def of_dimension(cls, d: int, alpha: float) -> "Scene":
        """Σ = I on R^d."""
        return cls(LinearRegression(np.eye(d)), alpha)

    @property
    def start(self) -> Isotropic:
        """`‖A‖ = b = α`."""
        return Isotropic(jnp.asarray(self.alpha), jnp.asarray(self.alpha))

    def risk(self, params: Isotropic, scores: ScoreTable) -> Float[Array, ""]:
        """The exact risk: everything is a function of the query's length alone."""
        d = self.task.dimension
        return block_risk(self.task, params.blocks(d), scores, radial_average(d))


def finite_log_lengths(lengths: list[int], log_lengths: list[float]) -> list[float]:
    """ln L in increasing order: of the lengths at which descents are run, and of longer prompts."""
    return sorted({*np.log(lengths), *log_lengths})


def clock(horizon: float, gap_times: list[float]) -> Float[np.ndarray, " times"]:
    """Times in geometric progression until the horizon, and those at which flows are compared."""
    return np.union1d(np.geomspace(0.05, horizon, 80), gap_times)


def stacked_tables(log_lengths: list[float]) -> ScoreTable:
    """Score tables with a leading axis of lengths."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(score_table, log_lengths))


@dataclass(frozen=True)
class Flows:
    """Exact gradient flows from one start, a row a length; the last length stands for the infinite prompt."""

    log_lengths: list[float]
    times: Float[np.ndarray, " times"]
    size: Float[np.ndarray, "lengths times"]
    gain: Float[np.ndarray, "lengths times"]
    risk: Float[np.ndarray, "lengths times"]

    @classmethod
    def of(cls, scene: Scene, finite: list[float], times: Float[np.ndarray, " times"]) -> "Flows":
        """At all finite ln L, and at the infinite one; together, under one compilation."""
        log_lengths = [*finite, INFINITE]

        def follow(scores):
            def risk(params):
                return scene.risk(params, scores)

            path = gradient_flow(risk, scene.start, times, rtol=RTOL, atol=RTOL / 100).params
            return path, jax.vmap(risk)(path)

        path, risk = jax.jit(jax.vmap(follow))(stacked_tables(log_lengths))
        return cls(log_lengths, times, np.asarray(path.size), np.asarray(path.gain), np.asarray(risk))


def prompt_name(log_length: float) -> str:
    """A prompt as tables name it: by its length."""
    return "infinite" if log_length == INFINITE else f"{np.exp(log_length):.0f}"
