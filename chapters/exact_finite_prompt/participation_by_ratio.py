"""Participation by the ratio of the size of the query to that of the largest score, and its limit for long prompts."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lib.finite_prompt import LARGEST_TAU, participation


@dataclass(frozen=True)
class Curve:
    """Participation at one length as a function of a = τ/√(2 ln L)."""

    ratio: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Frozen:
    """Participation of prompts of one length for a query beyond freezing, a = `ratio` > 1."""

    log_length: float
    ratio: float
    participation: float


def solve_participation_curves(log_lengths: list[float]) -> dict[float, Curve]:
    """Return participation for each ln L, until a = 2.5 or the largest τ of the guaranteed domain."""
    curves = {}
    for log_length in log_lengths:
        critical = np.sqrt(2 * log_length)
        ratio = np.linspace(0.0, min(2.5, LARGEST_TAU / critical), 61)
        # dividing the largest τ by `critical` and multiplying again may round to a larger number
        taus = np.minimum(ratio * critical, LARGEST_TAU)
        curves[log_length] = Curve(ratio, np.asarray(participation(taus, log_length)))
    return curves


def solve_participation_beyond_freezing(log_length: float) -> Frozen:
    """Return participation at a = 2, or at the largest a of the guaranteed domain if that is smaller."""
    ratio = min(2.0, 0.99 * LARGEST_TAU / np.sqrt(2 * log_length))
    measured = float(participation(ratio * np.sqrt(2 * log_length), log_length))
    return Frozen(log_length, ratio, measured)


def frozen_participation(ratio: np.ndarray) -> np.ndarray:
    """Return `(1 - 1/a)₊`; the weights of the frozen random-energy model are Poisson-Dirichlet with parameter 1/a."""
    return 1 - 1 / np.maximum(ratio, 1.0)
