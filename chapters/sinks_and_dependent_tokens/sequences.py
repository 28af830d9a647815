"""Stationary Gaussian prompts whose tokens depend on each other, and their predicted fluctuation."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.signal import lfilter

from lib.attention import Attention, dependent_fluctuation
from lib.measures import Gaussian
from lib.random import normal

# Correlations below it are left out.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True)
class Process:
    """A stationary sequence of standard normals with correlations r_k.

    Attributes:
      name: what figures call it.
      correlations: r_1, ..., r_K; the later ones are 0 or negligible.
      pole, zero: the sequence is `x_i = pole x_{i-1} + scale (e_i + zero e_{i-1})` with standard normal e.
    """

    name: str
    correlations: Float[np.ndarray, " lags"]
    pole: float
    zero: float


def autoregressive(r: float) -> Process:
    """Return the sequence with `r_k = r^k`."""
    lags = int(np.ceil(np.log(NEGLIGIBLE) / np.log(r))) if r else 1
    return Process(f"AR({r:g})", r ** np.arange(1.0, lags + 1), r, 0.0)


def moving_average(r: float) -> Process:
    """Return the sequence with `r_1 = r` and no other correlations, |r| < 1/2."""
    return Process(f"MA({r:g})".replace("-", "−"), np.array([r]), 0.0, (1 - np.sqrt(1 - 4 * r**2)) / (2 * r))


PROCESSES = (autoregressive(0.8), autoregressive(0.5), moving_average(-0.4))


def draw(process: Process, shape: tuple[int, ...], *, key: PRNGKeyArray) -> Float[np.ndarray, "*shape"]:
    """Return independent sequences along the last axis."""
    noise = np.asarray(normal(key, (*shape[:-1], shape[-1] + 1)))
    if process.zero:
        return (noise[..., 1:] + process.zero * noise[..., :-1]) / np.sqrt(1 + process.zero**2)
    scaled = noise * np.sqrt(1 - process.pole**2)
    scaled[..., 0] = noise[..., 0]  # the stationary start
    return lfilter([1.0], [1.0, -process.pole], scaled, axis=-1)[..., 1:]


def softmax_of(scores: np.ndarray) -> np.ndarray:
    """Return softmax weights along the last axis."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def weighed_correlation(weights: np.ndarray, correlations: np.ndarray) -> np.ndarray:
    """Return `pᵀRp` for each row p of weights, by a Fourier transform along the row."""
    length = weights.shape[-1]
    lags = min(len(correlations), length - 1)
    power = np.abs(np.fft.rfft(weights, 2 * length)) ** 2
    products = np.fft.irfft(power, 2 * length)[..., : lags + 1]
    return products[..., 0] + 2 * products[..., 1:] @ correlations[:lags]


@dataclass(frozen=True)
class SimulatedFluctuation:
    """`L` times squared distances of outputs from the infinite prompt's, one per prompt.

    Attributes:
      along: in the direction of the query.
      across: in a direction orthogonal to it.
    """

    process: Process
    tau: float
    along: Float[np.ndarray, " prompts"]
    across: Float[np.ndarray, " prompts"]


def simulate_fluctuations(
    taus: Sequence[float], length: int, prompts: int, *, key: PRNGKeyArray
) -> list[SimulatedFluctuation]:
    """Draw prompts of two-dimensional tokens of each process, and attend to them with a query of each size."""
    results = []
    for number, process in enumerate(PROCESSES):
        tokens = draw(process, (2, prompts, length), key=jr.fold_in(key, number))
        for tau in taus:
            weights = softmax_of(tau * tokens[0])
            along, across = (np.sum(weights * part, axis=-1) for part in tokens)
            results.append(SimulatedFluctuation(process, tau, length * (along - tau) ** 2, length * across**2))
    return results


@dataclass(frozen=True)
class ShortPrompts:
    """Short prompts of one process: terms of the exact identities, one value per prompt.

    Attributes:
      score: the mean score `ĝ = Σ p_i g_i`.
      across: output in a direction orthogonal to the query.
      weighed: `pᵀRp`.
      participation: `Σ p_i²`.
    """

    process: Process
    length: int
    tau: float
    score: Float[np.ndarray, " prompts"]
    across: Float[np.ndarray, " prompts"]
    weighed: Float[np.ndarray, " prompts"]
    participation: Float[np.ndarray, " prompts"]


def simulate_short_prompts(
    lengths: Sequence[int], tau: float, prompts: int, *, key: PRNGKeyArray
) -> list[ShortPrompts]:
    """Draw short prompts of two-dimensional tokens of each process."""
    results = []
    for number, process in enumerate(PROCESSES):
        for length in lengths:
            tokens = draw(process, (2, prompts, length), key=jr.fold_in(jr.fold_in(key, number), length))
            weights = softmax_of(tau * tokens[0])
            score, across = (np.sum(weights * part, axis=-1) for part in tokens)
            weighed = weighed_correlation(weights, process.correlations)
            results.append(ShortPrompts(process, length, tau, score, across, weighed, np.sum(weights**2, axis=-1)))
    return results


def solve_fluctuation(correlations: np.ndarray, taus: Sequence[float], dimension: int = 2) -> np.ndarray:
    """Return the predicted limits of `L Var` along and across a query of each size, shape (taus, 2)."""
    identity = np.eye(dimension)
    params, gaussian = Attention(identity, identity), Gaussian(np.zeros(dimension), identity)
    limits = [np.diag(dependent_fluctuation(params, gaussian, tau * identity[0], correlations)) for tau in taus]
    return np.asarray(limits)[:, :2]


def solve_independent(taus: Sequence[float], dimension: int = 2) -> np.ndarray:
    """Return the same limits for independent tokens."""
    return solve_fluctuation(np.zeros(0), taus, dimension)


def dependence_factor(correlations: np.ndarray, taus: Sequence[float], dimension: int = 2) -> np.ndarray:
    """Return ρ(τ), the fluctuation of dependent tokens over that of independent ones, summed over coordinates.

    A prompt of L dependent tokens fluctuates as one of L/ρ independent tokens; Γ and V are the identity.
    """
    weights = np.array([1.0, dimension - 1.0])
    return (solve_fluctuation(correlations, taus, dimension) @ weights) / (solve_independent(taus, dimension) @ weights)


@dataclass(frozen=True)
class FrozenPrompts:
    """Prompts of one process and length beyond freezing: `Σ p_i²` and `pᵀRp`, one value per prompt."""

    r: float
    length: int
    participation: Float[np.ndarray, " prompts"]
    weighed: Float[np.ndarray, " prompts"]


def simulate_frozen_prompts(
    ratio: float, correlations: Sequence[float], lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> list[FrozenPrompts]:
    """Draw scores of autoregressive sequences at `τ = ratio √(2 ln L)`."""
    results = []
    for number, r in enumerate(correlations):
        process = autoregressive(r)
        for length in lengths:
            scores = draw(process, (prompts, length), key=jr.fold_in(jr.fold_in(key, number), length))
            weights = softmax_of(ratio * np.sqrt(2 * np.log(length)) * scores)
            weighed = weighed_correlation(weights, process.correlations)
            results.append(FrozenPrompts(r, length, np.sum(weights**2, axis=-1), weighed))
    return results
