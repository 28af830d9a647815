"""Exact local slopes of errors in ln L: averaged over queries, by size and spectrum of heads, and at a fixed ratio."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import ErrorTable, planar_density, radial_density, statistics_along
from lib.finite_prompt import LARGEST_TAU

# Squared norms H², on both sides of ½, of the heads whose slopes are computed at every length.
SQUARED_NORMS = (0.25, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Slopes:
    """Local slope of the query-averaged error of one head, at each length."""

    log_lengths: Float[np.ndarray, " lengths"]
    slope: Float[np.ndarray, " lengths"]


def solve_slopes_by_norm(errors: ErrorTable) -> dict[float, Slopes]:
    """Return, by H², the local slope of the query-averaged error of one coordinate at each length."""
    return {
        squared: Slopes(errors.log_lengths, errors.slope(radial_density(errors.taus, np.sqrt(squared), 1), 1))
        for squared in SQUARED_NORMS
    }


@dataclass(frozen=True)
class SlopesAtOneLength:
    """Local slope of the query-averaged error of one coordinate at ln L = READ_AT, as a function of H² and at H = 1."""

    squared_norms: Float[np.ndarray, " norms"]
    slope: Float[np.ndarray, " norms"]
    at_one: float


def solve_slopes_at_one_length(errors: ErrorTable, norms: int) -> SlopesAtOneLength:
    """Return the slopes at ln L = READ_AT, for H² from 1/8 to 8 and for H = 1."""
    squared = np.geomspace(1 / 8, 8.0, norms)
    table = errors.at_length(READ_AT)
    slopes = [table.slope(radial_density(errors.taus, np.sqrt(h), 1), 1).item() for h in squared]
    at_one = table.slope(radial_density(errors.taus, 1.0, 1), 1).item()
    return SlopesAtOneLength(squared, np.asarray(slopes), at_one)


@dataclass(frozen=True)
class Spectrum:
    """Singular values of one head, and the local slope of its query-averaged error at each length."""

    values: tuple[float, ...]
    log_lengths: Float[np.ndarray, " lengths"]
    slope: Float[np.ndarray, " lengths"]


def solve_slopes_by_spectrum(errors: ErrorTable) -> dict[str, Spectrum]:
    """Return the slopes of four heads with the largest singular value 1 and of one with a larger one."""
    spectra = {
        "(√2)": (radial_density(errors.taus, np.sqrt(2.0), 1), (np.sqrt(2.0),)),
        "(1)": (radial_density(errors.taus, 1.0, 1), (1.0,)),
        "(1, ½)": (planar_density(errors.taus, 1.0, 0.5), (1.0, 0.5)),
        "(1, 1)": (radial_density(errors.taus, 1.0, 2), (1.0, 1.0)),
        "(1, …, 1) in R⁸": (radial_density(errors.taus, 1.0, 8), (1.0,) * 8),
    }
    return {
        name: Spectrum(values, errors.log_lengths, errors.slope(density, len(values)))
        for name, (density, values) in spectra.items()
    }


@dataclass(frozen=True)
class LocalExponents:
    """Exponents `-d ln Q / d ln L` at one length, at each fixed ratio a within the guaranteed domain."""

    ratio: Float[np.ndarray, " n"]
    slope: Float[np.ndarray, " n"]


def solve_local_exponents(ratios: int, log_lengths: list[float]) -> dict[float, LocalExponents]:
    """Return, by ln L, the local exponents of Q along τ = a √(2 ln L) at fixed a; READ_AT is added to the lengths."""
    ratio = np.linspace(0.0, 1.2, ratios)
    exponents = {}
    for log_length in sorted({*log_lengths, READ_AT}):
        covered = ratio[ratio**2 * 2 * log_length <= LARGEST_TAU**2]
        values, slopes = statistics_along(2 * covered**2 * log_length, 2 * covered**2, log_length)
        exponents[log_length] = LocalExponents(covered, -slopes.score_error / values.score_error)
    return exponents


def ratio_exponent(ratio: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return `r(a)`: 1 - 2a² for a ≤ 1/√3, (1 - a²)²/(4a²) for 1/√3 ≤ a ≤ 1, and 0 for a ≥ 1 [heuristic]."""
    squared = np.maximum(ratio, 1e-12) ** 2
    rare_prompts = (1 - squared) ** 2 / (4 * squared)
    return np.where(squared <= 1 / 3, 1 - 2 * squared, np.where(squared <= 1, rare_prompts, 0.0))
