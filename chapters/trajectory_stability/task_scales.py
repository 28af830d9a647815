"""One sub-Gaussian scale per task: the average over tasks of the bound on a task's error.

Tokens `(x, ⟨w, x⟩)` with x ~ N(0, I) are N(0, Γ_w), and the largest eigenvalue of Γ_w is `σ_w² = 1 + ‖w‖²`, the scale
of task w. A bound that falls like `L^{-1/σ_w²}` for one task falls like `E L^{-1/σ_w²}` on average over tasks.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2, f

from chapters.trajectory_stability.problems import DIMENSION

# Power of ln L that multiplies the average over tasks, as the audit reads Assumption 4.2.
LOGARITHMS = 4
# Values of ln L at which claims use the curves: one at which the curves differ, and the last factor of two.
LONG, ENDS = 1e3, (5e3, 1e4)
LOG_LENGTHS = np.union1d(np.geomspace(1.0, ENDS[1], 121), [LONG, ENDS[0]])
# Degrees of freedom on both sides of eight, at which a falling curve becomes a rising one.
LIGHT, HEAVY = 12, 5
# ‖w‖² in a corner of the square on which uniform tasks have covariance I.
CORNER = 6.0
# Trapezoid nodes for ln ‖w‖²: densities and bounds are analytic there, and negligible at both ends.
_NODES = np.linspace(-25.0, 60.0, 8501)

# The logarithm of the density of ‖w‖².
LogDensity = Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]]

# Averaged bounds by distribution of the task vectors.
Curves = dict[str, Float[np.ndarray, " n"]]

NORMAL: LogDensity = chi2(DIMENSION).logpdf


def student_tasks(freedom: int) -> LogDensity:
    """Return the log-density of ‖w‖² for Student tasks of covariance I; `‖w‖² / (1 - 2/n) / d` is F-distributed."""
    return f(DIMENSION, freedom, scale=DIMENSION * (1 - 2 / freedom)).logpdf


def mean_bound(log_lengths: Float[np.ndarray, " n"], density: LogDensity) -> Float[np.ndarray, " n"]:
    """Return `(ln L)⁴ E L^{-1/σ_w²}`, by quadrature over ln ‖w‖²."""
    squares = np.exp(_NODES)
    exponents = density(squares) + _NODES - log_lengths[:, None] / (1 + squares)
    return log_lengths**LOGARITHMS * np.trapezoid(np.exp(exponents), _NODES, axis=1)


def one_bound(log_lengths: Float[np.ndarray, " n"], square: float) -> Float[np.ndarray, " n"]:
    """Return `(ln L)⁴ L^{-1/σ²}` with one scale σ for all tasks, that of the largest ‖w‖²."""
    return log_lengths**LOGARITHMS * np.exp(-log_lengths / (1 + square))


def student_power(freedom: int) -> float:
    """Return the limiting power of ln L of `mean_bound`: ‖w‖² ≳ ln L has a probability of order (ln L)^{-n/2}."""
    return LOGARITHMS - freedom / 2


def student_correction(freedom: int, log_length: float) -> float:
    """Return the next term of the local power at ln L, for d = 2, where the density is `∝ (n - 2 + ‖w‖²)^{-n/2-1}`."""
    return (freedom / 2 + 1) * (freedom - 3) * freedom / 2 / log_length


def student(freedom: int) -> str:
    """Return the name of a Student distribution."""
    return f"Student, n = {freedom}"


def solve_averaged_bounds() -> Curves:
    """Return the averaged bound for each distribution of task vectors, all with covariance I, by quadrature."""
    normal, light, heavy = (
        mean_bound(LOG_LENGTHS, law) for law in (NORMAL, student_tasks(LIGHT), student_tasks(HEAVY))
    )
    bounded = one_bound(LOG_LENGTHS, CORNER)
    return {"bounded": bounded, "normal": normal, student(LIGHT): light, student(HEAVY): heavy}
