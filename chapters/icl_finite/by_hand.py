"""Claims on the numbers of the by-hand cells."""

from collections.abc import Sequence

import jax
import numpy as np

from chapters.icl_finite.valley_search import solve_final_risks
from companion import Claims
from lib.icl import Blocks, LinearRegression, QueryAverage, ScoreTable, block_risk
from lib.statistics import standard_error


def loss_of_drawn_prompts(losses: np.ndarray) -> Claims:
    """Claim the mean loss of the head A = 0.5 I, b = 2 on prompts of 64 pairs in five dimensions."""
    claim = Claims("icl-finite-by-hand", source="derived here")
    task, head = LinearRegression(np.eye(5)), Blocks(0.5 * np.eye(5), np.float64(2.0))
    claim.equal(
        "loss",
        "The mean loss of the head $A = I/2$, $b = 2$ on drawn prompts of 64 pairs in five dimensions is the exact "
        "risk.",
        losses.mean(),
        jax.jit(block_risk)(task, head, ScoreTable.at(np.log(64)), QueryAverage.radial(5)),
        std_error=standard_error(losses),
        rejects=(
            "the risk is that of the infinite prompt",
            task.infinite_risk(head.head()),
        ),
    )
    return claim


def least_risk_of_the_valley(risks: Sequence[float]) -> Claims:
    """Claim the least risk of heads A = uI, b = 1/u on prompts of 512 pairs in five dimensions."""
    claim = Claims("icl-finite-by-hand", source="derived here")
    (final,) = solve_final_risks([5], [float(np.log(512))])
    claim.equal(
        "valley",
        "The least risk of 25 heads $A = uI$, $b = 1/u$ on prompts of 512 pairs is the risk after training to the end.",
        min(risks),
        final.trained,
        within=final.trained / 20,
        because="a twentieth, for the gain $1/u$ in place of the best one and for the step of $u$",
        rejects=("it is the risk at the limit of the infinite flow", final.at_limit),
    )
    return claim
