"""The error averaged over queries, not its slope: its powers of ln L at H = 1, and its limit times L below H² = ½."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import exponent
from lib.concentration import isotropic_error, radial_table
from lib.finite_prompt import LARGEST_TAU

# Dimensions on both sides of two, where the error at H = 1 has the one factor ln L of the bound.
DIMENSIONS = (1, 2, 3, 8)
LOG_LENGTHS = (20.0, 60.0, 150.0, READ_AT)
# Sizes H² < ½ of the heads at which L times the error is compared with its limit.
SMALL_SQUARED_NORMS = (0.125, 0.25, 0.4)
# Enough Gauss–Legendre nodes on all τ that the theory covers: the integrands are wider than a third.
NODES = 128


@dataclass(frozen=True)
class AveragedErrors:
    """Errors averaged over queries, exact, for Γ = Γ_q = V = I in several dimensions."""

    log_lengths: Float[np.ndarray, " lengths"]
    log_ratios: Float[np.ndarray, "dimensions lengths"]
    """ln(error · L^β(1) / ln L) at H = 1."""
    scaled: Float[np.ndarray, "norms dimensions"]
    """L · error at ln L = READ_AT, for heads with H² < ½."""

    @property
    def powers(self) -> Float[np.ndarray, " dimensions"]:
        """Local power of ln L in error · L^β(1) / ln L at H = 1, between the two longest lengths."""
        return np.diff(self.log_ratios[:, -2:])[:, 0] / np.log(self.log_lengths[-1] / self.log_lengths[-2])


def compute() -> AveragedErrors:
    """Average the exact errors at LOG_LENGTHS over the sizes of the queries."""
    log_lengths = np.asarray(LOG_LENGTHS)
    table = radial_table(log_lengths, largest_tau=LARGEST_TAU, nodes=NODES)
    log_errors = np.log([isotropic_error(table, 1.0, dimension) for dimension in DIMENSIONS])
    log_ratios = log_errors + exponent(1.0) * log_lengths - np.log(log_lengths)
    scaled = [
        [np.exp(READ_AT + np.log(isotropic_error(table, np.sqrt(squared), d)[-1])) for d in DIMENSIONS]
        for squared in SMALL_SQUARED_NORMS
    ]
    return AveragedErrors(log_lengths, log_ratios, np.asarray(scaled))


def mean_fluctuation(squared_norm: float, dimension: int, *, shifted: bool = True) -> float:
    """E e^{τ²}(d + τ²), the limit of L · error at H² < ½; without the shift of the tilted mean, E e^{τ²} d."""
    tokens = (1 - 2 * squared_norm) ** (-dimension / 2)
    return dimension * tokens * (1 + shifted * squared_norm / (1 - 2 * squared_norm))
