"""Exact errors of finite prompts at the balanced optimum and at rescaled heads, averaged over Gaussian queries.

At the balanced optimum XY = N, and both X and Y have the singular values √σ_i, where σ_i are those of N = MΣ^{1/2}. A
head with the values V/c and the scores cU has the same infinite prompt. Its queries have τ² = c² Σ σ_i g_i² with
standard normal g, so that its size is H² = c² σ_max, and the error is

    c⁻² E [(Q - P) Σ σ_i² g_i² / Σ σ_i g_i² + P Σ σ_i].
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar

from lib.batching import in_batches
from lib.concentration import RadialTable
from lib.finite_prompt import LARGEST_TAU, score_statistics
from lib.icl import best_in_the_valley, valley_limit

# ln L at which exponents are read: there a local slope is within about 1/(2 ln L) of its limit.
READ_AT = 300.0
# Gauss–Legendre nodes in τ. They are dense at small τ, where the integrands of small heads are narrow.
NODES = 96
ANGLES = 256
# ln L of the longest prompts for which the factor is varied: there the best head is at its limit.
LONG_PROMPTS = 40.0


@dataclass(frozen=True)
class ErrorTable:
    """P and Q at the nodes of a quadrature in τ (rows) and at several lengths (columns), and their slopes in ln L."""

    log_lengths: Float[np.ndarray, " lengths"]
    values: RadialTable
    slopes: RadialTable

    @classmethod
    def at(cls, log_lengths: list[float]) -> "ErrorTable":
        """Return the table at `log_lengths`, LONG_PROMPTS and READ_AT."""
        log_lengths = sorted({*log_lengths, LONG_PROMPTS, READ_AT})
        unit, width = np.polynomial.legendre.leggauss(NODES)
        tau, weight = LARGEST_TAU * (1 + unit) / 2, LARGEST_TAU * width / 2
        pairs = np.repeat(tau**2, len(log_lengths)), np.tile(log_lengths, NODES)
        tables = [
            RadialTable(tau, weight, *(column.reshape(NODES, -1) for column in (each.participation, each.score_error)))
            for each in in_batches(_with_slopes, *pairs)
        ]
        return cls(np.asarray(log_lengths), *tables)


@jax.jit
def _with_slopes(tau_squared, log_length):
    return jax.jvp(
        score_statistics, (tau_squared, log_length), (jnp.zeros_like(tau_squared), jnp.ones_like(log_length))
    )


def singular_values(condition: float) -> Float[np.ndarray, "2"]:
    """Return those of MΣ^{1/2} in the plane, for M = I and Σ with the eigenvalues 1 and 1/condition."""
    return np.array([1.0, condition**-0.5])


def averaged_error(table: RadialTable, sigma: Float[np.ndarray, "2"], factor: float) -> Float[np.ndarray, " lengths"]:
    """Return the error of the head with c² = `factor` in the plane, averaged over queries."""
    angle = 2 * np.pi * (np.arange(ANGLES) + 0.5) / ANGLES
    directions = np.stack([np.cos(angle) ** 2, np.sin(angle) ** 2])
    variances = factor * sigma
    density = np.exp(-(table.tau[:, None] ** 2) * (directions / variances[:, None]).sum(axis=0) / 2)
    density *= (table.weight * table.tau / (ANGLES * np.sqrt(variances.prod())))[:, None]
    along = density @ (sigma @ directions)
    terms = along @ (table.score_error - table.participation)
    return (terms + sigma.sum() * density.sum(axis=1) @ table.participation) / factor


def limit(sigma: Float[np.ndarray, " d"], factor: float, *, shifted: bool = True) -> float:
    """Return the limit of L times the error for c² σ_max < ½, or without the shift of the tokens if not `shifted`."""
    growth = 1 / (1 - 2 * factor * sigma)
    return float(np.sqrt(growth.prod()) * (sigma.sum() / factor + shifted * (sigma**2 * growth).sum()))


@dataclass(frozen=True)
class Optimum:
    """The balanced optimum at one condition number, and the head rescaled by c."""

    condition: float
    factor: float
    log_lengths: Float[np.ndarray, " lengths"]
    balanced_slope: Float[np.ndarray, " lengths"]
    rescaled_slope: Float[np.ndarray, " lengths"]
    rescaled_scaled: Float[np.ndarray, " lengths"]
    """L times the error of the rescaled head, over its limit."""
    unshifted: float
    """The limit without the shift of the tokens, over the limit."""

    @property
    def multiplicity(self) -> int:
        """The number of largest singular values."""
        return 2 if self.condition == 1 else 1


def solve_optima(table: ErrorTable, conditions: list[float], factor: float) -> list[Optimum]:
    """Return the exact errors at each condition number, of the balanced optimum and at c² = `factor`."""
    optima = []
    for condition in conditions:
        sigma = singular_values(condition)
        balanced, rescaled = (averaged_error(table.values, sigma, c) for c in (1.0, factor))
        slopes = [-averaged_error(table.slopes, sigma, c) / error for c, error in ((1.0, balanced), (factor, rescaled))]
        expected = limit(sigma, factor)
        scaled = np.exp(table.log_lengths + np.log(rescaled / expected))
        unshifted = limit(sigma, factor, shifted=False) / expected
        optima.append(Optimum(condition, factor, table.log_lengths, *slopes, scaled, unshifted))
    return optima


@dataclass(frozen=True)
class RescaledErrors:
    """Errors for M = Σ = I along c², over the error d(d + 1)/L of linear attention, and the best c²."""

    dimension: int
    factors: Float[np.ndarray, " factors"]
    log_lengths: Float[np.ndarray, " lengths"]
    ratios: Float[np.ndarray, "factors lengths"]
    limits: Float[np.ndarray, " factors"]
    """The limit of long prompts; NaN from c² = ½ on."""
    best: Float[np.ndarray, " lengths"]
    least: Float[np.ndarray, " lengths"]
    best_of_limit: float


def solve_rescaled_errors(table: ErrorTable, dimension: int, count: int) -> RescaledErrors:
    """Return the errors at `count` factors c² up to 1, and the best factor of each length up to LONG_PROMPTS."""
    factors = np.geomspace(0.02, 1.0, count)
    drawn = table.log_lengths <= LONG_PROMPTS
    log_lengths = table.log_lengths[drawn]

    def ratio(factor: float) -> Float[np.ndarray, " lengths"]:
        error = table.values.error(factor**0.5, dimension)[drawn] / factor
        return np.exp(log_lengths + np.log(error / linear_error(dimension)))

    searches = [
        minimize_scalar(
            lambda log_factor, place=place: np.log(ratio(np.exp(log_factor))[place]),
            bounds=(np.log(0.02), 0.0),
            method="bounded",
            options={"xatol": 1e-10},
        )
        for place in range(len(log_lengths))
    ]
    inside = np.where(factors < 0.5, factors, np.nan)
    with np.errstate(invalid="ignore"):
        limits = np.asarray(valley_limit(inside, dimension)) / linear_error(dimension)
    return RescaledErrors(
        dimension,
        factors,
        log_lengths,
        np.stack([ratio(factor) for factor in factors]),
        limits,
        np.exp([float(search.x) for search in searches]),
        np.exp([float(search.fun) for search in searches]),
        best_in_the_valley(dimension).squared_tilt,
    )


def linear_error(dimension: int) -> float:
    """Return L times the error of linear attention with V = U = I for Σ = I, which is exact at every length."""
    return dimension * (dimension + 1.0)
