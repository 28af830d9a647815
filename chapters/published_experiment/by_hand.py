"""Claims on the numbers of the by-hand cells."""

import numpy as np

from chapters.published_experiment.protocol import above_noise, noise_power, published_task
from chapters.published_experiment.runs import read_long_runs
from companion import Claims
from lib.icl import LinearRegression
from lib.statistics import standard_error

# Lengths of the prompts of the two cells.
SHORT, LONG = 20, 100


def training_ends_at_the_optimum(squares: np.ndarray) -> Claims:
    """Claim the mean square of the best linear head on drawn prompts of 20 pairs."""
    claim = Claims("published-experiment-by-hand", source="measured here")
    task, run = published_task(), read_long_runs(f"linear_{SHORT}_0.csv")["linear", SHORT, 0]
    power, trace = float(task.task_scale) ** 2, np.trace(task.cov)
    # the variance of the estimate of the task with S⁻¹, (d + 1) 𝔼wᵀSw + d times the noise, over the length
    of_long_prompts = power * (trace + task.dimension * (trace + noise_power() / power)) / SHORT
    claim.equal(
        "optimum",
        "On drawn prompts of 20 pairs the linear head with the matrix $M$ has the mean square at which the tracked "
        "training of linear attention ends.",
        squares.mean(),
        run.risks[-1],
        std_error=standard_error(squares),
        rejects=("the best matrix is $S^{-1}$, as on an infinite prompt", noise_power() + of_long_prompts),
    )
    return claim


def flaw_multiplies_the_mean_square(above: list[float]) -> Claims:
    """Claim the ratio of the least mean squares of linear attention on 100 pairs under both pairs of covariances."""
    claim = Claims("published-experiment-by-hand", source="derived here")
    corrected, flawed = published_task(), published_task(covariance_bug=True)
    only_prompts = LinearRegression(
        flawed.cov, corrected.query_cov, task_scale=corrected.task_scale, noise_std=corrected.noise_std
    )
    expected, half = (_least(task) / _least(corrected) for task in (flawed, only_prompts))
    claim.equal(
        "flaw",
        "For linear attention on 100 pairs the covariances of the published code multiply the least mean square minus "
        "the label noise by the ratio of the two curves.",
        above[1] / above[0],
        expected,
        within=1e-9,
        because="rounding errors of the inverse of a matrix with five rows",
        rejects=("the flaw changes the prompts, and not the query", half),
    )
    return claim


def _least(task: LinearRegression) -> float:
    """Return the least mean square of linear attention on the longer prompts, minus the label noise."""
    return above_noise(2 * float(task.linear_attention_risk(LONG)))
