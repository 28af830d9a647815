"""Errors of both gradients of simulated prompts, in the experiment of this chapter with Gaussian tokens.

The error of ∇_V is the number of outputs times the error of the output, hence exact at every length; ∇_U depends on the
covariance of the tilted tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.experiment import DIMENSION, QUERIES, SPREAD, head, isotropic
from chapters.concentration.gaps import (
    ByImportance,
    TiltedMeasure,
    TiltedPrompt,
    bilinear_gap,
    sample_gaps,
    value_gap,
)
from lib.attention import Attention
from lib.measures import Gaussian

# The names of the two gradients, ∇_V and ∇_U.
VALUE, BILINEAR = "value", "bilinear"


class BothGaps(NamedTuple):
    """Squared errors of ∇_V and ∇_U, for one or many prompts and queries."""

    value: Float[np.ndarray, "..."]
    bilinear: Float[np.ndarray, "..."]


def both_gaps(
    params: Attention, prompt: TiltedPrompt, limit: TiltedMeasure, queries: Float[np.ndarray, "*n q d"]
) -> BothGaps:
    """Return the squared errors for each prompt and query."""
    return BothGaps(value_gap(params, prompt, limit, queries), bilinear_gap(params, prompt, limit, queries))


@dataclass(frozen=True)
class PairedErrors:
    """Squared errors of both gradients for the same prompts: one row per prompt, one column per length."""

    lengths: Sequence[int]
    samples: BothGaps

    def curve(self, name: str) -> ErrorCurve:
        """Return the mean error of the gradient with this name."""
        return ErrorCurve.of(self.lengths, self.samples._asdict()[name])

    @property
    def log_ratio(self) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
        """Return ln of the ratio of the errors of ∇_U and ∇_V at each length, and its covariance."""
        value, bilinear = (samples.mean(axis=0) for samples in self.samples)
        difference = self.samples.bilinear / bilinear - self.samples.value / value
        return np.log(bilinear / value), np.cov(difference, rowvar=False) / len(difference)


def point(norm: float) -> Gaussian:
    """Return a query of this norm as a Gaussian of covariance 0; the type is that of `isotropic`, to compile once."""
    return Gaussian(norm * np.eye(DIMENSION)[0], np.zeros((DIMENSION, DIMENSION)))


def simulate_by_scale(
    scales: Sequence[float], gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, PairedErrors]:
    """Return, for each σ, the errors of prompts with tokens of this scale, for standard normal queries."""
    return {
        sigma: simulate_gradient_errors(
            isotropic(DIMENSION, sigma),
            isotropic(DIMENSION, SPREAD),
            gain,
            lengths,
            prompts,
            spread=SPREAD,
            key=jr.fold_in(key, index),
        )
        for index, sigma in enumerate(scales)
    }


def simulate_by_query(
    taus: Sequence[float], gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, PairedErrors]:
    """Return, for each τ, the errors of prompts with tokens of scale 1, all for one query of this size."""
    return {
        tau: simulate_gradient_errors(
            isotropic(DIMENSION), point(tau / gain), gain, lengths, prompts, spread=1.0, key=jr.fold_in(key, index)
        )
        for index, tau in enumerate(taus)
    }


def simulate_gradient_errors(
    tokens: Gaussian,
    queries: Gaussian,
    gain: float,
    lengths: Sequence[int],
    prompts: int,
    *,
    spread: float,
    key: PRNGKeyArray,
) -> PairedErrors:
    """Return the errors of prompts, each with fresh queries that are weighted back from `spread` to 1."""
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    samples = sample_gaps(ByImportance(both_gaps, spread), head(gain), tokens, queries, lengths, **options)
    return PairedErrors(lengths, samples)
