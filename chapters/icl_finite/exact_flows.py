"""The gradient flow of the exact risk on prompts of L tokens, and of infinitely many.

For Σ = I and a start `A ∝ I` the exact dynamics have two numbers, ‖A‖_F and b.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import solve_ivp

from chapters.icl_finite.parameters import EARLIEST
from lib.finite_prompt import LARGEST_LOG_LENGTH
from lib.icl import Blocks, LinearRegression, ScoreTable, block_risk, isotropic_blocks, radial_average, score_table

# e^330 tokens: P and Q are below 1e-100, which is what "infinite" means in float64.
INFINITE = LARGEST_LOG_LENGTH
# Local error of a flow's steps, relative and absolute.
RTOL, ATOL = 1e-10, 1e-12


class Isotropic(eqx.Module):
    """The block head with `A = size · I/√d`, so that ‖A‖_F is its size: the flow in (size, gain) is that in (A, b)."""

    size: Float[Array, "*rows"]
    gain: Float[Array, "*rows"]

    def blocks(self, d: int) -> Blocks:
        """A and b."""
        return isotropic_blocks(d, self.size, self.gain)


@dataclass(frozen=True)
class IsotropicProblem:
    """What all trainings of the chapter have in common: an isotropic task, and the scale of a balanced start."""

    task: LinearRegression
    alpha: float

    @classmethod
    def of_dimension(cls, d: int, alpha: float) -> "IsotropicProblem":
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
    return np.union1d(np.geomspace(EARLIEST, horizon, 120), gap_times)


def stacked_tables(log_lengths: list[float]) -> ScoreTable:
    """Score tables with a leading axis of lengths."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(score_table, log_lengths))


def flow(risk: Callable[..., Float[Array, ""]], like: Any, *, rtol: float = RTOL, atol: float = ATOL) -> Callable:
    """`(start, times, *of_the_prompt) ↦` parameters, risks: the gradient flow of `risk(params, *of_the_prompt)`.

    Compiled once, for all prompts and all starts of the shapes of `like`. The curvatures across and along the valley
    differ by a factor L: the integrator is implicit where it has to be, and SciPy's, because to compile one costs more
    than to run this one.
    """
    unflatten = jax.flatten_util.ravel_pytree(like)[1]
    evaluate = jax.jit(jax.value_and_grad(lambda flat, *prompt: risk(unflatten(flat), *prompt)))

    def follow(start, times, *prompt):
        solved = solve_ivp(
            lambda time, point: -np.asarray(evaluate(point, *prompt)[1]),
            (0.0, times[-1]),
            np.asarray(jax.flatten_util.ravel_pytree(start)[0]),
            method="LSODA",
            t_eval=times,
            rtol=rtol,
            atol=atol,
        )
        risks = np.asarray([float(evaluate(point, *prompt)[0]) for point in solved.y.T])
        return jax.vmap(unflatten)(jnp.asarray(solved.y.T)), risks

    return follow


@dataclass(frozen=True)
class Flow:
    """The exact gradient flow on prompts of one length."""

    log_length: float
    times: Float[np.ndarray, " times"]
    size: Float[np.ndarray, " times"]
    gain: Float[np.ndarray, " times"]
    risk: Float[np.ndarray, " times"]

    @property
    def prompt(self) -> str:
        """The prompt as tables name it."""
        return prompt_name(self.log_length)

    def risk_at(self, time: float) -> float:
        """Interpolated, both logarithms."""
        return float(np.exp(np.interp(np.log(time), np.log(self.times), np.log(self.risk))))


@dataclass(frozen=True)
class Flows:
    """Flows from one start at the same times: of finite prompts, the shortest first, and of the infinite one."""

    finite: list[Flow]
    infinite: Flow

    @classmethod
    def of(cls, problem: IsotropicProblem, finite: list[float], times: Float[np.ndarray, " times"]) -> "Flows":
        """At all finite ln L, and at the infinite one."""
        follow = flow(problem.risk, problem.start)

        def at(log_length):
            path, risks = follow(problem.start, times, score_table(log_length))
            return Flow(log_length, times, np.asarray(path.size), np.asarray(path.gain), risks)

        return cls([at(log_length) for log_length in finite], at(INFINITE))


def prompt_name(log_length: float) -> str:
    """A prompt as tables name it: by its length."""
    return "infinite" if log_length == INFINITE else f"{np.exp(log_length):.0f}"
