"""Exact mean outputs of finite prompts, and the largest score, which is their ceiling."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr

from lib.finite_prompt import LARGEST_TAU, participation


@dataclass(frozen=True)
class MeanOutputs:
    """Exact mean outputs of prompts of one length, as a function of the query size.

    Attributes:
      log_length: ln L.
      taus: query sizes.
      mean: mean outputs τ (1 - P) at `taus`.
      farthest: mean output at the largest τ of the guaranteed domain.
      ceiling: mean of the largest of L normals.
      tie: density at 0 of the distance between the largest and the second largest.
    """

    log_length: float
    taus: Float[np.ndarray, " taus"]
    mean: Float[np.ndarray, " taus"]
    farthest: float
    ceiling: float
    tie: float


def solve_mean_outputs(decades: list[int]) -> dict[int, MeanOutputs]:
    """Return `τ (1 - P)` as a function of τ, with its ceiling, for each log₁₀ L."""
    taus = np.append(np.linspace(0.0, 20.0, 61), LARGEST_TAU)
    curves = {}
    for decade in decades:
        log_length = decade * np.log(10.0)
        mean = taus * (1 - np.asarray(participation(taus, log_length)))
        curves[decade] = MeanOutputs(log_length, taus[:-1], mean[:-1], mean[-1], *largest_score(log_length))
    return curves


def largest_score(log_length: float) -> tuple[float, float]:
    """Return the mean of the largest of L normals and the density at zero of its distance to the second largest."""
    x, spacing = np.linspace(-12.0, np.sqrt(2 * log_length) + 12.0, 8001, retstep=True)
    others = np.expm1(log_length)
    log_density = -(x**2) / 2 - np.log(2 * np.pi) / 2
    largest = np.exp(log_length + log_density + others * log_ndtr(x))
    tied = np.exp(log_length + 2 * log_density + (others - 1) * log_ndtr(x)) * others
    return float(np.sum(x * largest) * spacing), float(np.sum(tied) * spacing)
