"""Exact and simulated risks with one, none, or several relevant tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray

from chapters.several_relevant_tokens.parameters import LARGEST_SNR, LENGTH, SHOWN_SNR
from chapters.several_relevant_tokens.settings import BEYOND, FAILING
from lib.single_location import (
    Absent,
    Independent,
    Several,
    Spiked,
    bayes_risk,
    bayes_risk_bounds,
    best_risk,
    linear,
    sigmoid,
    simulate_bayes_risk,
    softmax,
)

HEADS = {"softmax": softmax, "sigmoid": sigmoid, "linear": linear}
# The probability that there is a relevant token, where it may be absent.
PRESENT = 0.5
# Nodes of the integrals over ν, and where they end.
AREA_NODES, AREA_END = 60, 160.0


def snrs(points: int) -> np.ndarray:
    """Return signal strengths between 0 and the largest, the shown one included."""
    return np.unique(np.append(np.linspace(0.0, LARGEST_SNR, points), SHOWN_SNR))


def solve_head_risks(numbers: Sequence[int], points: int) -> pd.DataFrame:
    """Return the least risks of softmax, sigmoid and linear heads at L = 100, for one and for more relevant tokens."""
    grid = snrs(points)
    frames = []
    for relevant in (1, *numbers):
        task = Several(np.full(grid.size, float(LENGTH)), np.full(grid.size, float(relevant)), grid)
        heads = {head: np.asarray(best_risk(task, each)) for head, each in HEADS.items()}
        frames.append(pd.DataFrame({"relevant": relevant, "snr": grid, **heads}))
    return pd.concat(frames, ignore_index=True)


def simulate_bayes_risks(numbers: Sequence[int], points: int, prompts: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return both bounds of the Bayes risk at L = 100, and the simulated Bayes risk with its standard error."""
    grid, frames = snrs(points)[1:], []
    for relevant in numbers:
        task = Several(np.full(grid.size, float(LENGTH)), np.full(grid.size, float(relevant)), grid)
        lower, upper = (np.asarray(each) for each in bayes_risk_bounds(task))
        risk, error = (np.asarray(each) for each in simulate_bayes_risk(task, prompts, key=key))
        columns = {"snr": grid, "lower": lower, "upper": upper, "risk": risk, "risk_std_error": error}
        frames.append(pd.DataFrame({"relevant": relevant, **columns}))
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Areas:
    """Areas over ν at L = 100: what knowing the number of relevant tokens is worth.

    Attributes:
      known: element-wise minus Bayes risk, r = 1, by quadrature.
      expected: the same by its formula, 2 (L - 1) ln(L/(L - 1)).
      independent: risk of independent relevance at q = 1/10, by quadrature.
      entropy: the same by its formula, (2/q) h(q).
      many: the formula for r = 10, -(2/r) ln P(Bin(L, r/L) = r).
    """

    known: float
    expected: float
    independent: float
    entropy: float
    many: float


def solve_areas() -> Areas:
    """Return the areas; the integrand is smooth in the square root of ν."""
    nodes, weights = np.polynomial.legendre.leggauss(AREA_NODES)
    roots = 0.5 * math.sqrt(AREA_END) * (nodes + 1.0)
    weights = math.sqrt(AREA_END) * weights * roots
    grid, length = roots**2, np.full(AREA_NODES, float(LENGTH))
    bayes = np.asarray(bayes_risk(Spiked(length, grid)))
    elementwise = np.asarray(bayes_risk(Independent(length, np.full(AREA_NODES, 1.0 / LENGTH), grid)))
    independent = np.asarray(bayes_risk(Independent(length, np.full(AREA_NODES, 0.1), grid)))
    log_chance = math.log(math.comb(LENGTH, 10)) + 10 * math.log(0.1) + (LENGTH - 10) * math.log(0.9)
    return Areas(
        known=float(weights @ (elementwise - bayes)),
        expected=2.0 * (LENGTH - 1.0) * math.log(LENGTH / (LENGTH - 1.0)),
        independent=float(weights @ independent),
        entropy=-20.0 * (0.1 * math.log(0.1) + 0.9 * math.log(0.9)),
        many=-0.2 * log_chance,
    )


def solve_long_prompts(log_lengths: Sequence[float], ratios: Sequence[float]) -> pd.DataFrame:
    """Return risks of softmax and sigmoid with four relevant tokens in growing prompts, against ν/(2 ln(L/r))."""
    rows = []
    for log_length in sorted(log_lengths):
        length = float(np.round(np.exp(log_length)))
        for ratio in sorted({*ratios, BEYOND}):
            task = Several(length, FAILING, 2.0 * ratio * (log_length - math.log(FAILING)))
            risks = {head: float(best_risk(task, HEADS[head])) for head in ("softmax", "sigmoid")}
            rows.append({"log_length": log_length, "ratio": ratio, "snr": float(task.snr), **risks})
    return pd.DataFrame(rows)


def solve_absence(points: int) -> pd.DataFrame:
    """Return risks where the relevant token is there with probability ½: with a sink (Bayes) and without."""
    ratios = np.append(np.linspace(0.0, 2.4, points - 3)[1:], [3.2, 4.4, 6.0])
    rows = []
    for decade in (1, 3, 6):
        length = 10.0**decade
        for snr in ratios * 2.0 * math.log(length):
            task = Absent(length, snr, PRESENT)
            risks = {"with_sink": float(bayes_risk(task)), "without": float(best_risk(task, softmax))}
            floor = (1.0 - PRESENT) / (1.0 - PRESENT + PRESENT * length)
            rows.append({"decade": decade, "snr": snr, **risks, "floor": floor})
    return pd.DataFrame(rows)
