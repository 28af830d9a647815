"""Gradient flows of the exact risk on prompts of L tokens and of the infinite prompt.

For Σ = I and a start `A ∝ I` the exact dynamics have two variables, ‖A‖_F and b. The curvatures across and along the
valley differ by a factor L, so that the flows are stiff.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from chapters import UNOPTIMISED
from chapters.icl_finite.isotropic_risk import QueryLengths, isotropic_risk
from chapters.icl_finite.parameters import EARLIEST
from lib.flow import follow_flow
from lib.icl import LinearRegression, ScoreTable

# ln L that stands for the infinite prompt: with e^330 tokens P and Q are below 1e-100.
INFINITE = 330.0
# Relative and absolute tolerance of the steps of a flow.
RTOL, ATOL = 1e-10, 1e-12


class Isotropic(NamedTuple):
    """The block head with `A = size · I/√d` and ‖A‖_F = size; the flow in (size, gain) is the flow in (A, b)."""

    size: float | Float[Array, "*rows"]
    gain: float | Float[Array, "*rows"]


@dataclass(frozen=True)
class IsotropicProblem:
    """An isotropic task and the scale of the balanced start, which all isotropic trainings of the chapter share."""

    task: LinearRegression
    alpha: float

    @classmethod
    def of_dimension(cls, d: int, alpha: float) -> "IsotropicProblem":
        """Return the problem with Σ = I on R^d."""
        return cls(LinearRegression(np.eye(d)), alpha)

    @property
    def start(self) -> Isotropic:
        """Return the start `‖A‖ = b = α`."""
        return Isotropic(self.alpha, self.alpha)

    def risk(self, params: Isotropic, scores: ScoreTable) -> Float[Array, ""]:
        """Return the exact risk, as an average over the length of the query."""
        d = self.task.dimension
        return isotropic_risk(params.size / d**0.5, params.gain, scores, QueryLengths.of_dimension(d))


def finite_log_lengths(lengths: list[int], log_lengths: list[float]) -> list[float]:
    """Return ln L of the lengths of the descents and of longer prompts, in increasing order."""
    return sorted({*np.log(lengths), *log_lengths})


def recording_times(horizon: float, gap_times: list[float]) -> Float[np.ndarray, " times"]:
    """Return times in geometric progression until the horizon, with the times at which flows are compared."""
    return np.union1d(np.geomspace(EARLIEST, horizon, 120), gap_times)


def stacked_tables(log_lengths: list[float]) -> ScoreTable:
    """Return score tables with a leading axis of lengths."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *ScoreTable.at_each(log_lengths))


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
        """Return the name of the prompt in tables."""
        return prompt_name(self.log_length)

    def risk_at(self, time: float) -> float:
        """Return the risk at `time`, by log-log interpolation."""
        return float(np.exp(np.interp(np.log(time), np.log(self.times), np.log(self.risk))))


@dataclass(frozen=True)
class Flows:
    """Flows from one start at the same times, for finite prompts (the shortest first) and for the infinite prompt.

    `dimension` is that of the covariates.
    """

    finite: list[Flow]
    infinite: Flow
    dimension: int


def solve_flows(problem: IsotropicProblem, log_lengths: list[float], times: Float[np.ndarray, " times"]) -> Flows:
    """Return the flows at all `log_lengths` and of the infinite prompt."""

    @partial(jax.jit, compiler_options=UNOPTIMISED)
    @jax.value_and_grad
    def risk_and_slope(point, scores):
        return problem.risk(Isotropic(*point), scores)

    start = np.asarray(problem.start)

    def at(log_length, scores):
        points, risks = follow_flow(risk_and_slope, start, times, scores, rtol=RTOL, atol=ATOL)
        return Flow(log_length, times, size=points[:, 0], gain=points[:, 1], risk=risks)

    log_lengths = [*log_lengths, INFINITE]
    *finite, infinite = map(at, log_lengths, ScoreTable.at_each(log_lengths))
    return Flows(finite, infinite, problem.task.dimension)


def prompt_name(log_length: float) -> str:
    """Return the name of a prompt in tables: its length, or `infinite`."""
    return "infinite" if log_length == INFINITE else f"{np.exp(log_length):.0f}"
