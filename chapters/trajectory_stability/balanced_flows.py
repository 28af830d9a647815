"""The exact gradient flows of R_L and R_∞ from a balanced start, for normal tasks and Gaussian covariates.

No prompt is drawn: on block heads the risk on prompts of L Gaussian tokens is a quadrature over the query. The three
covariates have variances from 2 to ½. The start is random and small, so that directions are learnt one after another.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.flow import gradient_flow
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk

VARIANCES = np.array([2.0, 1.0, 0.5])
# Relative error of a step of the flows, far below the smallest distance in the figure.
RTOL = 1e-8
# First recorded time, and number of recorded times until the horizon, in geometric progression.
EARLIEST, TIMES = 0.05, 60
# Frames of query directions: for flows, and for gradients at one head, where the tail of the queries matters more.
FLOW_FRAMES, HEAD_FRAMES = 16, 64
# ln L of "infinite" prompts: terms that depend on L are far below rounding, and all flows share one program.
INFINITE = 330.0
# ln L at which the exponent of the gradient's gap is measured: 1/L is still far above rounding.
LONG = (30.0, 40.0)


@dataclass(frozen=True)
class BalancedFlows:
    """Tilt and risk of the infinite flow, and distances and risks of the finite flows, at the same times."""

    decades: tuple[int, ...]
    times: Float[np.ndarray, " t"]
    tilts: Float[np.ndarray, " t"]
    infinite_risks: Float[np.ndarray, " t"]
    distances: Float[np.ndarray, "k t"]
    risks: Float[np.ndarray, "k t"]
    peak_exponent: float
    limit_exponent: float

    @property
    def limit_tilt(self) -> float:
        """Return H² at (A*, b*), where the infinite flow ends."""
        return squared_tilt(np.asarray(Blocks.infinite_limit(regression()).matrix))


def regression() -> LinearRegression:
    """Return the task, made when it is used, in double precision."""
    return LinearRegression(np.diag(VARIANCES))


def squared_tilt(matrix: Float[np.ndarray, "d d"]) -> float:
    """Return `H² = ‖Σ^{1/2} A Σ^{1/2}‖²`."""
    root = np.sqrt(VARIANCES)
    return float(np.linalg.norm(root[:, None] * matrix * root, ord=2) ** 2)


def start(key: PRNGKeyArray) -> Blocks:
    """Return the balanced start with a random Θ and half the largest α of [BB26, Thm 5.1]."""
    d = len(VARIANCES)
    return Blocks.balanced(jr.normal(key, (d, d)), np.sqrt(0.5) / d**0.25 / VARIANCES.max())


def solve_flows(decades: list[int], horizon: float, *, key: PRNGKeyArray) -> BalancedFlows:
    """Solve the flows at these powers of ten and for infinite prompts; measure exponents of the gradient's gap."""
    times = np.append(0.0, np.geomspace(EARLIEST, horizon, TIMES))
    path, risks = _flows(start(key), times, _tables([*(decade * np.log(10) for decade in decades), INFINITE]))
    infinite = jax.tree.map(lambda leaf: leaf[-1], path)
    squares = jnp.sum((path.matrix - infinite.matrix) ** 2, axis=(-1, -2)) + (path.gain - infinite.gain) ** 2
    tilts = np.array([squared_tilt(matrix) for matrix in np.asarray(infinite.matrix)])
    peak = jax.tree.map(lambda leaf: leaf[int(np.argmax(tilts))], infinite)
    exponents = (gap_exponent(peak), gap_exponent(Blocks.infinite_limit(regression())))
    rows = map(np.asarray, (risks[-1], jnp.sqrt(squares[:-1]), risks[:-1]))
    return BalancedFlows(tuple(decades), times, tilts, *rows, *exponents)


def gap_exponent(head: Blocks) -> float:
    """Return r in `‖∇R_L - ∇R_∞‖ ∝ L^-r` at one head, between the two lengths of `LONG`."""
    short, long = np.asarray(_gradient_gaps(head, _tables(LONG), _tables([INFINITE])))
    return float(np.log(short / long) / (LONG[1] - LONG[0]))


def _tables(log_lengths: Sequence[float]) -> ScoreTable:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(ScoreTable.at, log_lengths))


def _risk(scores: ScoreTable, frames: int, blocks: Blocks) -> Float[Array, ""]:
    return block_risk(regression(), blocks, scores, QueryAverage.of_frames(len(VARIANCES), frames=frames, radii=24))


@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
def _flows(head: Blocks, times: Float[Array, " t"], tables: ScoreTable) -> tuple[Blocks, Float[Array, "k t"]]:
    """Solve the flows one after the other: together, all would take the steps of the stiffest flow."""

    def follow_one(scores):
        risk = partial(_risk, scores, FLOW_FRAMES)
        path = gradient_flow(risk, head, times, rtol=RTOL, atol=RTOL / 100).params
        return path, jax.vmap(risk)(path)

    return jax.lax.map(follow_one, tables)


@partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
def _gradient_gaps(head: Blocks, tables: ScoreTable, infinite: ScoreTable) -> Float[Array, " k"]:
    def gradient(scores):
        slope = jax.grad(partial(_risk, scores, HEAD_FRAMES))(head)
        return jnp.append(jnp.ravel(slope.matrix), slope.gain)

    slopes, limits = jax.lax.map(gradient, tables), jax.lax.map(gradient, infinite)
    return jnp.linalg.norm(slopes - limits, axis=-1)
