"""The exact flow on finite prompts for a covariance that is not isotropic, from random balanced starts.

This is the setting of Theorem 5.1 of [BB26]: A is a full matrix, and no symmetry is preserved.
"""

from dataclasses import dataclass

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.flow import follow_flow
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, best_in_the_valley, block_risk

# Scale α of the starts, as a fraction of the theorem's bound.
INSIDE = 0.9
# Times at which training is stopped, at every length; and the time of its end in units of the length.
STOPPED, ENDED = (3.0, 10.0, 30.0), 10.0
# Nodes of the average over queries; with eight times as many the final risks change by 1e-4 of their values.
FRAMES, RADII = 8, 20
# Relative and absolute tolerance of the steps of a flow. The claims need a thousandth only, but with coarser steps the
# rounding of a machine changes the chosen steps, and published risks change in their sixth digit.
RTOL, ATOL = 1e-8, 1e-11


@dataclass(frozen=True)
class RandomFlows:
    """Risks of flows from random starts, and the risks with which they are compared.

    Attributes:
      log_lengths: ln L.
      stopped: risks at the times `STOPPED`.
      ended: risks at the end.
      at_limit: risks of the head where the infinite flow ends.
      valley_limit: C_Σ/(2L), the least risk in the valley to leading order.
      linear: risks of the best linear attention.
    """

    log_lengths: Float[np.ndarray, " lengths"]
    stopped: Float[np.ndarray, "starts lengths times"]
    ended: Float[np.ndarray, "starts lengths"]
    at_limit: Float[np.ndarray, " lengths"]
    valley_limit: Float[np.ndarray, " lengths"]
    linear: Float[np.ndarray, " lengths"]


def solve_random_flows(
    spectrum: list[float], starts: int, log_lengths: list[float], *, key: PRNGKeyArray
) -> RandomFlows:
    """Return flows for a Σ with the eigenvalues `spectrum` in random axes, from `starts` random Θ."""
    axes_key, start_key = jr.split(key)
    d = len(spectrum)
    axes = np.asarray(jr.orthogonal(axes_key, d))
    task = LinearRegression(axes @ np.diag(spectrum) @ axes.T)
    alpha = INSIDE * np.sqrt(2) / (d**0.25 * max(spectrum))
    thetas = np.asarray(jr.normal(start_key, (starts, d, d)))
    queries = QueryAverage.of_frames(d, frames=FRAMES, radii=RADII)

    @jax.jit
    @jax.value_and_grad
    def risk_and_slope(point, scores):
        return block_risk(task, Blocks(point[:-1].reshape(d, d), point[-1]), scores, queries)

    log_lengths = np.sort(log_lengths)
    tables = ScoreTable.at_each(log_lengths)
    limit = _point(Blocks.infinite_limit(task))
    points = [_point(Blocks.balanced(theta, alpha)) for theta in thetas]
    risks = np.asarray([_risks(risk_and_slope, point, log_lengths, tables) for point in points])
    return RandomFlows(
        log_lengths,
        risks[..., :-1],
        risks[..., -1],
        at_limit=np.asarray([float(risk_and_slope(limit, table)[0]) for table in tables]),
        valley_limit=sum(spectrum) / d * best_in_the_valley(d).limit / 2 * np.exp(-log_lengths),
        linear=np.asarray([float(task.linear_attention_risk(np.exp(ell))) for ell in log_lengths]),
    )


def _point(blocks: Blocks) -> Float[np.ndarray, " n"]:
    return np.append(blocks.matrix, blocks.gain)


def _risks(risk_and_slope, start: Float[np.ndarray, " n"], log_lengths, tables) -> Float[np.ndarray, "lengths times"]:
    """Return the risks at the times `STOPPED` and at the end, with one row per length."""
    ends = np.maximum(ENDED * np.exp(log_lengths), 2 * STOPPED[-1])
    return np.asarray(
        [
            follow_flow(risk_and_slope, start, np.asarray([*STOPPED, end]), table, rtol=RTOL, atol=ATOL)[1]
            for end, table in zip(ends, tables, strict=True)
        ]
    )
