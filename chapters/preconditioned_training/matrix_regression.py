"""Regression onto a fixed matrix by one softmax head on infinite prompts: plain and preconditioned gradient flow.

Tokens and queries are N(0, Σ), and the target of the query x is Mx. The output of an infinite prompt is VΣUx, so that
the loss is ½‖(VΣU - M)Σ^{1/2}‖². With X = VΣ^{1/2}, Y = Σ^{1/2}UΣ^{1/2} and N = MΣ^{1/2} it is ½‖XY - N‖². Here M = I.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.preconditioned_training.flows import BLOCKS, PLAIN, PRECONDITIONED
from lib.attention import Attention
from lib.flow import follow_flow
from lib.icl import Blocks, LinearRegression

# Relative tolerance of a step of the integration.
STEP_TOLERANCE = 1e-9
# The part of the curves that is integrated, in logits of the learnt fraction beyond that of the start.
LARGEST_LOGIT = 7.0


class Spectrum(NamedTuple):
    """A covariance by its eigenvalues and eigenvectors.

    Attributes:
      eigenvalues: positive numbers, shape (d,).
      vectors: an orthogonal matrix, one eigenvector per column, shape (d, d).
    """

    eigenvalues: Float[Array, " d"]
    vectors: Float[Array, "d d"]

    def power(self, exponent: float | Float[Array, ""]) -> Float[Array, "d d"]:
        """Return the power Σ^exponent."""
        return (self.vectors * self.eigenvalues**exponent) @ self.vectors.T


def spectrum_with_condition(condition: float, dimension: int, *, key: PRNGKeyArray) -> Spectrum:
    """Return eigenvalues in geometric progression from 1/condition to 1, with random eigenvectors."""
    eigenvalues = jnp.geomspace(1 / condition, 1.0, dimension)
    return Spectrum(eigenvalues, jnp.linalg.qr(jr.normal(key, (dimension, dimension)))[0])


def population_loss(
    params: Attention, cov: Float[Array, "d d"], target: Float[Array, "e d"] | None = None
) -> Float[Array, ""]:
    """Return `½ E ‖VΣUx - Mx‖² = ½ tr[(VΣU - M) Σ (VΣU - M)ᵀ]`; M = I by default."""
    miss = params.value @ cov @ params.bilinear - (jnp.eye(len(cov)) if target is None else target)
    return 0.5 * jnp.trace(miss @ cov @ miss.T)


def preconditioned(slope: Attention, factor: Float[Array, "d d"]) -> Attention:
    """Return the direction `(G ∇_U G, ∇_V G)`; the preconditioner of this chapter has G = Σ⁻¹, the plain flow G = I."""
    return eqx.tree_at(
        lambda params: (params.bilinear, params.value), slope, (factor @ slope.bilinear @ factor, slope.value @ factor)
    )


def aligned_start(spectrum: Spectrum, fraction: float | Float[Array, ""], power: float | Float[Array, ""]) -> Attention:
    """Return the balanced head with `VΣU = fraction · I` for G = Σ^{-power}: V = √fraction Σ^{-½ + power/4}.

    In the coordinates VG^{-1/2} and G^{-1/2}UG^{-1/2} of the flow, the singular values of both matrices are equal.
    """
    root = jnp.sqrt(fraction)
    return Attention(root * spectrum.power(-0.5 - power / 4), root * spectrum.power(-0.5 + power / 4))


@dataclass(frozen=True)
class Learning:
    """The largest error of the learnt matrix along one flow, with time in units of the inverse of the fastest rate.

    The error is ‖VΣU - I‖, for blocks ‖bΣA - I‖, in operator norm.
    """

    flow: str
    condition: float
    slowness: float
    """The fastest rate over the slowest, by the closed form."""
    start: float
    times: Float[np.ndarray, " n"]
    integrated: Float[np.ndarray, " n"]

    def closed_form(self, times: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return the error by the closed form, `1 - f` with f logistic."""
        return logistic_error(times / self.slowness, self.start)

    def halving_time(self) -> float:
        """Return the time at which the integrated error is ½, by interpolation of logits, which grow linearly."""
        logits = np.log1p(-self.integrated) - np.log(self.integrated)
        return float(np.interp(0.0, logits, self.times))


def logistic_error(times: Float[np.ndarray, " n"], start: float) -> Float[np.ndarray, " n"]:
    """Return `1 - f(t)` for `f' = f (1 - f)`, f(0) = start."""
    return 1 / (1 + start / (1 - start) * np.exp(times))


def fastest_rate(flow: str, eigenvalues: Float[np.ndarray, " d"]) -> float:
    """Return the rate of the first axis: 2λ² (plain), 2√λ (preconditioned), 2√(tr Σ) (blocks)."""
    largest = float(np.max(eigenvalues))
    rates = {PLAIN: largest**2, PRECONDITIONED: largest**0.5, BLOCKS: float(np.sum(eigenvalues)) ** 0.5}
    return 2 * rates[flow]


def solve_learning(
    conditions: Sequence[float], dimension: int, start: float, points: int, *, key: PRNGKeyArray
) -> list[Learning]:
    """Return the integrated flows of all kinds at all condition numbers, from balanced starts with the same matrix."""
    keys = jr.split(key, len(conditions))
    learning = []
    for condition, axes in zip(conditions, keys, strict=True):
        spectrum = spectrum_with_condition(condition, dimension, key=axes)
        slownesses = {PLAIN: condition**2, PRECONDITIONED: condition**0.5, BLOCKS: 1.0}
        for flow, slowness in slownesses.items():
            first = np.log(1 / start - 1)
            times = slowness * np.linspace(0.0, first + LARGEST_LOGIT, points)
            rate = fastest_rate(flow, np.asarray(spectrum.eigenvalues))
            if flow == BLOCKS:
                error = _block_error(spectrum, start, times / rate)
            else:
                error = _head_error(spectrum, start, float(flow == PRECONDITIONED), times / rate)
            learning.append(Learning(flow, condition, slowness, start, times, error))
    return learning


def _head_error(spectrum: Spectrum, start, power, times: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the error of the learnt matrix along the flow of (U, V) with G = Σ^{-power}."""
    cov, factor = spectrum.power(1.0), spectrum.power(-power)
    head = aligned_start(spectrum, start, power)
    points, _ = follow_flow(_head_flow, _flat(head.bilinear, head.value), times, cov, factor, rtol=STEP_TOLERANCE)
    bilinear, value = np.swapaxes(points.reshape(-1, 2, *cov.shape), 0, 1)
    return _operator_norm(value @ cov @ bilinear)


@jax.jit
def _head_flow(point: Float[Array, " p"], cov: Float[Array, "d d"], factor: Float[Array, "d d"]):
    """Return the loss at a head, and the direction `(G ∇_U G, ∇_V G)`."""
    loss, slope = jax.value_and_grad(population_loss)(Attention(*point.reshape(2, *cov.shape)), cov)
    direction = preconditioned(slope, factor)
    return loss, jnp.append(direction.bilinear, direction.value)


def _block_error(spectrum: Spectrum, start, times: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the error of the learnt matrix along the flow of (A, b) with the gradient Σ⁻² ∇_A Σ⁻¹."""
    cov, inverse = spectrum.power(1.0), np.asarray(spectrum.power(-1.0))
    gain = np.sqrt(start * np.sqrt(np.trace(cov)))
    points, _ = follow_flow(_block_flow, _flat(start / gain * inverse, gain), times, cov, inverse, rtol=STEP_TOLERANCE)
    matrices, gains = points[:, :-1].reshape(-1, *cov.shape), points[:, -1]
    return _operator_norm(gains[:, None, None] * np.asarray(cov) @ matrices)


@jax.jit
def _block_flow(point: Float[Array, " p"], cov: Float[Array, "d d"], inverse: Float[Array, "d d"]):
    """Return the risk at a block head, and the direction `(Σ⁻² ∇_A Σ⁻¹, ∇_b)`."""
    task, blocks = LinearRegression(cov), Blocks(point[:-1].reshape(cov.shape), point[-1])
    risk, slope = jax.value_and_grad(lambda blocks: task.infinite_risk(blocks.head()))(blocks)
    return risk, jnp.append(inverse @ inverse @ slope.matrix @ inverse, slope.gain)


def _flat(*parts: Float[Array, "..."]) -> Float[np.ndarray, " p"]:
    return np.concatenate([np.ravel(part) for part in parts])


def _operator_norm(learnt: Float[np.ndarray, "n d d"]) -> Float[np.ndarray, " n"]:
    return np.linalg.norm(learnt - np.eye(learnt.shape[-1]), ord=2, axis=(1, 2))
