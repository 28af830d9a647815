"""Claims on the numbers of the by-hand cells."""

from collections.abc import Sequence

import jax
import numpy as np

from chapters.trajectory_stability.balanced_flows import VARIANCES, blocks_at, regression
from companion import Claims
from lib.flow import follow_flow
from lib.statistics import comparison_quantile, standard_error

# Size of A at the start of the descent, its lengths of prompts, and a time at which the infinite flow has arrived.
START, SHORT, LONG, HORIZON = 0.1, 100, 1600, 20.0


def descent_passes_a_large_tilt(squared_tilts: Sequence[float]) -> Claims:
    """Claim the largest squared tilt of gradient descent on infinite prompts from the balanced start A = I/10."""
    claim = Claims("trajectory-stability-by-hand", source="derived here", box="tilts-on-the-way")
    size = len(VARIANCES)
    task, times = regression(), np.linspace(0, HORIZON, 1001)
    risk_and_slope = jax.jit(jax.value_and_grad(lambda point: task.infinite_risk(blocks_at(point).head())))
    points, _ = follow_flow(risk_and_slope, np.append(START * np.eye(size), START * size**0.5), times)
    tilts = VARIANCES * points[:, : size**2 : size + 1]
    claim.equal(
        "tilt",
        "Gradient descent on infinite prompts from the balanced start $A = I/10$ passes heads with the largest $H²$ of "
        "the flow from there.",
        max(squared_tilts),
        np.max(tilts) ** 2,
        within=0.01 * np.max(tilts) ** 2,
        because="half the step $10^{-3}$ times the largest curvature of the risk at the end, which is below 20",
        rejects=("the first direction is learnt before the others grow, and $H² = Σ_{11}$", VARIANCES.max()),
    )
    return claim


def gradients_concentrate(short: np.ndarray, long: np.ndarray) -> Claims:
    """Claim the exponent of the squared errors of one derivative between prompts of 100 and of 1,600 signs."""
    claim = Claims("trajectory-stability-by-hand", source="measured here")
    ratio = np.log(LONG / SHORT)
    relative_errors = [standard_error(squares) / squares.mean() for squares in (short, long)]
    error = np.linalg.norm(relative_errors) / ratio
    claim.equal(
        "rate",
        "For random signs and $H² = ¼$, the mean squared error of the derivative with respect to the gain falls like "
        "$1/L$ (measured: its exponent between 100 and 1,600 tokens).",
        np.log(short.mean() / long.mean()) / ratio,
        1,
        within=comparison_quantile(1) * error + 3 / SHORT / ratio,
        because="99.9 % quantile of one standard normal deviation, times the standard error, and a relative correction "
        "$3/L$ of the error at 100 tokens, where the sum over the binomial number of positive signs gives $2.5/L$",
        std_error=error,
        rejects=("the squared error falls like $L^{-1/2}$", 0.5),
    )
    return claim
