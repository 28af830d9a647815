"""Errors averaged over queries, with bounded (uniform) queries or with bounded tokens (random signs)."""

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm

from chapters.sharp_rates.query_averages import ErrorTable
from chapters.sharp_rates.slopes import Slopes

# Sizes H² of the heads: one at which Gaussian tokens and queries give the golden ratio, and two larger ones.
SQUARED_NORMS = (1.0, 2.0, 4.0)
# Shortest and longest prompts of signs, as powers of two; there a sum over the number of plus signs is cheap.
SHORTEST, LONGEST = 4, 16


def solve_bounded_query_slopes(log_lengths: list[float]) -> dict[float, Slopes]:
    """Return the slopes by H² for Gaussian tokens and queries uniform on [-√3, √3], with τ uniform on [0, √3 H]."""
    edges = np.sqrt(3.0 * np.asarray([0.0, *SQUARED_NORMS]))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = np.diff(edges)
    taus = (edges[:-1, None] + widths[:, None] * (1 + nodes) / 2).ravel()
    errors = ErrorTable.at(log_lengths, taus)
    slopes = {}
    for panels, squared in enumerate(SQUARED_NORMS, start=1):
        density = np.outer(widths * (np.arange(widths.size) < panels), weights).ravel()
        slopes[squared] = Slopes(errors.log_lengths, errors.slope(density, 1))
    return slopes


def solve_bounded_token_slopes() -> dict[float, Slopes]:
    """Return the slopes by H² for tokens ±1, queries N(0, 1) and U = H.

    A prompt with K plus signs has the output `tanh(ξ + ½ ln(K/(L - K)))`.
    """
    lengths = 2 ** np.arange(SHORTEST, LONGEST + 1)
    slopes = {}
    for squared in SQUARED_NORMS:
        errors = np.asarray([_error_of_signs(length, np.sqrt(squared)) for length in lengths])
        # a difference between two lengths is the slope at their geometric mean
        slopes[squared] = Slopes(np.log(lengths[:-1] * np.sqrt(2.0)), -np.diff(np.log2(errors)))
    return slopes


def _error_of_signs(length: int, head: float) -> float:
    """Return `E (T - tanh ξ)²` over prompts of signs and queries ξ ~ N(0, head²), by a sum over K and a trapezoid."""
    spread = int(min(length / 2, 5 * np.sqrt(length) + 1))  # ten standard deviations of K
    plus = np.arange(length // 2 - spread, length // 2 + spread + 1)
    log_probability = gammaln(length + 1) - gammaln(plus + 1) - gammaln(length - plus + 1) - length * np.log(2.0)
    with np.errstate(divide="ignore"):
        shift = (np.log(plus) - np.log(length - plus)) / 2
    tilts, spacing = np.linspace(-9.0, 9.0, 361, retstep=True)
    squares = (np.tanh(head * tilts[:, None] + shift) - np.tanh(head * tilts)[:, None]) ** 2
    return float(spacing * norm.pdf(tilts) @ squares @ np.exp(log_probability))
