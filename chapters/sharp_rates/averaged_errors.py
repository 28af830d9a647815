"""The error averaged over queries: its power of ln L at H = 1, and the limit of L times the error for H² < ½."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import exponent
from lib.concentration import RadialTable
from lib.finite_prompt import LARGEST_TAU

# Dimensions on both sides of two, where the error at H = 1 has exactly the factor ln L of the bound.
DIMENSIONS = (1, 2, 3, 8)
LOG_LENGTHS = (20.0, 60.0, 150.0, READ_AT)
# Head sizes H² < ½ at which L times the error is compared with its limit.
SMALL_SQUARED_NORMS = (0.125, 0.25, 0.4)
# Enough Gauss–Legendre nodes over the range of τ that the theory covers: the integrands are wider than a third.
NODES = 128


@dataclass(frozen=True)
class AveragedErrors:
    """Exact errors averaged over queries, for Γ = Γ_q = V = I in several dimensions."""

    log_lengths: Float[np.ndarray, " lengths"]
    log_ratios: Float[np.ndarray, "dimensions lengths"]
    """ln(error · L^β(1) / ln L) at H = 1."""
    scaled: Float[np.ndarray, "norms dimensions"]
    """L · error at ln L = READ_AT, for heads with H² < ½."""

    @property
    def powers(self) -> Float[np.ndarray, " dimensions"]:
        """Return the power of ln L in error · L^β(1) / ln L at H = 1, between the two longest lengths."""
        return np.diff(self.log_ratios[:, -2:])[:, 0] / np.log(self.log_lengths[-1] / self.log_lengths[-2])


def solve_averaged_errors() -> AveragedErrors:
    """Return the exact errors at LOG_LENGTHS, averaged over queries."""
    log_lengths = np.asarray(LOG_LENGTHS)
    table = RadialTable.at(log_lengths, largest_tau=LARGEST_TAU, nodes=NODES)
    log_errors = np.log([table.error(1.0, dimension) for dimension in DIMENSIONS])
    log_ratios = log_errors + exponent(1.0) * log_lengths - np.log(log_lengths)
    scaled = [
        [np.exp(READ_AT + np.log(table.error(np.sqrt(squared), d)[-1])) for d in DIMENSIONS]
        for squared in SMALL_SQUARED_NORMS
    ]
    return AveragedErrors(log_lengths, log_ratios, np.asarray(scaled))


def mean_fluctuation(squared_norm: float, dimension: int, *, shifted: bool = True) -> float:
    """Return E e^{τ²}(d + τ²), the limit of L · error for H² < ½, or E e^{τ²} d if not `shifted`."""
    tokens = (1 - 2 * squared_norm) ** (-dimension / 2)
    return dimension * tokens * (1 + shifted * squared_norm / (1 - 2 * squared_norm))
