"""The exact gradient flows of R_L and R_∞ from a balanced start, for normal tasks and Gaussian covariates.

No prompt is drawn: on block heads the risk on prompts of L Gaussian tokens is a quadrature over the query. The three
covariates have variances from 2 to ½. The start is random and small, so that directions are learnt one after another.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.flow import follow_flow
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk

VARIANCES = np.array([2.0, 1.0, 0.5])
# Relative error of a step of the flows, far below the smallest distance in the figure.
RTOL = 1e-10
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
        return squared_tilt(Blocks.infinite_limit(regression()).matrix)


def regression() -> LinearRegression:
    """Return the task, made when it is used, in double precision."""
    return LinearRegression(np.diag(VARIANCES))


def squared_tilt(matrix: Float[Array | np.ndarray, "d d"]) -> float:
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
    log_lengths, queries = [*(decade * np.log(10) for decade in decades), INFINITE], _queries(FLOW_FRAMES)
    follow = partial(follow_flow, _risk_and_slope, _point_of(start(key)), times, rtol=RTOL, atol=RTOL / 100)
    flows = [follow(scores, queries) for scores in ScoreTable.at_each(log_lengths)]
    *finite, infinite = (points for points, _ in flows)
    *finite_risks, infinite_risks = (risks for _, risks in flows)
    tilts = np.array([squared_tilt(blocks_at(point).matrix) for point in infinite])
    limit = _point_of(Blocks.infinite_limit(regression()))
    exponents = (gap_exponent(infinite[np.argmax(tilts)]), gap_exponent(limit))
    distances = np.linalg.norm(np.stack(finite) - infinite, axis=-1)
    return BalancedFlows(tuple(decades), times, tilts, infinite_risks, distances, np.stack(finite_risks), *exponents)


def gap_exponent(point: Float[np.ndarray, " p"]) -> float:
    """Return r in `‖∇R_L - ∇R_∞‖ ∝ L^-r` at one head, between the two lengths of `LONG`."""
    parts = _parts(_queries(HEAD_FRAMES), HEAD_FRAMES // FLOW_FRAMES)
    tables = ScoreTable.at_each((*LONG, INFINITE))
    *slopes, limit = (np.mean([_risk_and_slope(point, scores, part)[1] for part in parts], axis=0) for scores in tables)
    short, long = np.linalg.norm(np.stack(slopes) - limit, axis=-1)
    return float(np.log(short / long) / (LONG[1] - LONG[0]))


def blocks_at(point: Float[Array | np.ndarray, " p"]) -> Blocks:
    """Return the block head with the entries `point`, A first."""
    d = len(VARIANCES)
    return Blocks(point[:-1].reshape(d, d), point[-1])


def _point_of(head: Blocks) -> Float[np.ndarray, " p"]:
    return np.append(head.matrix, head.gain)


def _queries(frames: int) -> QueryAverage:
    return QueryAverage.of_frames(len(VARIANCES), frames=frames, radii=24)


def _parts(queries: QueryAverage, count: int) -> list[QueryAverage]:
    """Split an average into averages over `count` equal parts of its nodes, which share a compiled program.

    Their mean is the average over all nodes.
    """
    nodes, weights = (np.split(np.asarray(leaf), count) for leaf in (queries.nodes, queries.weights))
    return [QueryAverage(*map(jnp.asarray, part)) for part in zip(nodes, count * np.asarray(weights), strict=True)]


@jax.jit
@jax.value_and_grad
def _risk_and_slope(point: Float[Array, " p"], scores: ScoreTable, queries: QueryAverage) -> Float[Array, ""]:
    return block_risk(regression(), blocks_at(point), scores, queries)
