"""Errors of simulated prompts, and the quantities that the proof of [BB26, Prop. 3.1] uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.special import gammaln, log_ndtr

from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.experiment import DIMENSION, QUERIES, SPREAD, clusters, head, isotropic
from chapters.concentration.gaps import ByImportance, TiltedMeasure, TiltedPrompt, output_gap, sample_gaps
from lib.attention import Attention

# Relative excess of a weighted mean of vectors over the longest of them that rounding may cause in double precision.
ROUNDING = 1e-9


class ProofQuantities(NamedTuple):
    """Squared error and quantities of the proof with the truncation M = L^κ, for one or many prompts and queries."""

    gap: Float[np.ndarray, "..."]
    """`‖T[μ̂_L](z) - T[μ](z)‖²`."""
    above: Float[np.ndarray, "..."]
    """1 if the largest weight exceeds M, else 0."""
    gap_above: Float[np.ndarray, "..."]
    """The squared error if the largest weight exceeds M, else 0."""
    ceiling_above: Float[np.ndarray, "..."]
    """The bound `(max_i ‖Vz_i‖ + ‖T[μ](z)‖)²` of the proof if the largest weight exceeds M, else 0."""
    longer: Float[np.ndarray, "..."]
    """1 if the output is longer than `max_i ‖Vz_i‖` by more than rounding, else 0."""
    limit_longer: Float[np.ndarray, "..."]
    """1 if the output of the infinite prompt is longer than `max_i ‖Vz_i‖`, else 0."""


@dataclass(frozen=True)
class MeasureProof:
    """Function that measures the quantities of the proof; it serves `sample_gaps` as a gap."""

    truncation: float

    def __call__(
        self, params: Attention, prompt: TiltedPrompt, limit: TiltedMeasure, queries: Float[np.ndarray, "*n q d"]
    ) -> ProofQuantities:
        """Return the quantities for each prompt and query."""
        output_size, limit_size = (np.linalg.norm(side.mean @ params.value.T, axis=-1) for side in (prompt, limit))
        longest = np.sqrt(np.max(np.sum((prompt.tokens @ params.value.T) ** 2, axis=-1), axis=-1, keepdims=True))
        highest = np.max(prompt.scores, axis=-1)
        above = np.where(highest > self.truncation * np.log(prompt.tokens.shape[-2]), 1.0, 0.0)
        gap = output_gap(params, prompt, limit, queries)
        return ProofQuantities(
            gap=gap,
            above=above,
            gap_above=gap * above,
            ceiling_above=(longest + limit_size) ** 2 * above,
            longer=np.where(output_size > (1 + ROUNDING) * longest, 1.0, 0.0),
            limit_longer=np.where(limit_size > (1 + ROUNDING) * longest, 1.0, 0.0),
        )


@dataclass(frozen=True)
class SimulatedProof:
    """Quantities of the proof for simulated prompts: rows are prompts, columns are lengths; averaged over queries."""

    lengths: Sequence[int]
    samples: ProofQuantities

    @property
    def error(self) -> ErrorCurve:
        """Return the mean squared error at each length."""
        return ErrorCurve.of(self.lengths, self.samples.gap)


def simulate_by_scale(
    scales: Sequence[float], gain: float, truncation: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[float, SimulatedProof]:
    """Return, for each σ, the quantities for prompts of Gaussian tokens, each with fresh standard normal queries."""

    def simulate(tokens, key):
        options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
        measure, wide = ByImportance(MeasureProof(truncation), SPREAD), isotropic(DIMENSION, SPREAD)
        samples = sample_gaps(measure, head(gain), tokens, wide, lengths, **options)
        return SimulatedProof(lengths, samples)

    return {sigma: simulate(clusters(sigma, within=1.0), jr.fold_in(key, i)) for i, sigma in enumerate(scales)}


def log_chi_density(radius: Float[np.ndarray, "..."], dimension: int) -> Float[np.ndarray, "..."]:
    """Return the logarithm of the density of ‖z‖ at positive radii, for z ~ N(0, I_d)."""
    half = dimension / 2
    return (dimension - 1) * np.log(radius) - radius**2 / 2 - (half - 1) * np.log(2) - gammaln(half)


def fraction_above(
    operator_norm: float, dimension: int, truncation: float, length: float | Float[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """Return `P(max_i ⟨Uz, z_i⟩ > κ ln L) = E[1 - Φ(κ ln L / H‖z‖)^L]`; the mean over ‖z‖ is a trapezoidal sum."""
    radius = np.linspace(0.0, 12.0 + np.sqrt(dimension), 6001)[1:, None]
    tail = fraction_above_given(operator_norm * radius, truncation, length)
    return np.trapezoid(tail * np.exp(log_chi_density(radius, dimension)), radius, axis=0)


def fraction_above_given(
    tau: float | Float[np.ndarray, "n 1"], truncation: float, length: float | Float[np.ndarray, " k"]
) -> Float[np.ndarray, "*n k"]:
    """Return this probability for a query of size τ: `1 - Φ(κ ln L / τ)^L`."""
    return -np.expm1(length * log_ndtr(truncation * np.log(length) / tau))
