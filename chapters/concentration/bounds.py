"""The bound of [BB26, Prop. 3.1, 3.4] with fitted constants, and how far it is above the errors."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Float, Num
from scipy.optimize import minimize_scalar


def straight_exponents(
    lengths: Num[np.ndarray, " k"] | Sequence[int], errors: Float[np.ndarray, "*rows k"]
) -> Float[np.ndarray, "*rows"]:
    """Return minus the slope of the least-squares line through `ln error` against `ln L`, for each row.

    All lengths have the same weight and no correction is fitted: for curves without error bars.

    Args:
      lengths: prompt lengths, shape (k,).
      errors: positive errors, shape (..., k).

    Returns:
      The exponents, shape (...).
    """
    logs = np.log(np.asarray(lengths, float))
    centred = logs - logs.mean()
    return np.asarray(-(np.log(errors) @ centred) / (centred @ centred))


class BoundShape(eqx.Module):
    """The bound `c₁ σ^p (ln L)^q / L^{c₂/σ²}` of [BB26, Prop. 3.1, 3.4]. Python numbers.

    p = 6 and q = 1 for outputs and $∇_V$, p = 12 and q = 2 for $∇_U$. At L = 1 it is zero, which no error is: use it
    for L ≥ 2.

    Attributes:
      c1: the factor c₁.
      c2: the constant c₂ in the exponent.
      sigma_power: p.
      log_power: q.
    """

    c1: float
    c2: float
    sigma_power: int
    log_power: int

    def __call__(
        self, sigma: float | Float[np.ndarray, "..."], length: float | Num[np.ndarray, "..."]
    ) -> Float[np.ndarray, "..."]:
        """Return the bound at σ and L, which broadcast.

        Args:
          sigma: σ, positive.
          length: prompt length L ≥ 2.

        Returns:
          The bound, of the broadcast shape.
        """
        log_length = np.log(length)
        decay = np.exp(-self.c2 / np.square(sigma) * log_length)
        return np.asarray(self.c1 * sigma**self.sigma_power * log_length**self.log_power * decay)


def fit_bound(
    sigmas: Sequence[float],
    lengths: Num[np.ndarray, " k"],
    errors: Float[np.ndarray, "s k"],
    *,
    sigma_power: int = 6,
    log_power: int = 1,
) -> BoundShape:
    """Return one pair of constants for all σ: the propositions state that there is one, but not which.

    c₂ is the smallest `σ² · slope` over σ, with the slopes of straight lines through `ln error` against `ln L`; c₁ is
    the smallest constant that bounds all given errors. It is a fit, not the paper's constants, and need not hold at
    other lengths.

    Args:
      sigmas: values of σ, shape (s,).
      lengths: prompt lengths L ≥ 2, shape (k,).
      errors: measured errors, shape (s, k).
      sigma_power: p of the bound.
      log_power: q of the bound.

    Returns:
      The bound with the fitted constants.
    """
    c2 = float(np.min(np.square(sigmas) * straight_exponents(lengths, errors)))
    return _touching(BoundShape(1.0, c2, sigma_power, log_power), sigmas, lengths, errors)


def _touching(shape: BoundShape, sigmas: Sequence[float], lengths: Num[np.ndarray, " k"], errors) -> BoundShape:
    """Return the bound with the smallest c₁ that bounds all given errors."""
    unit = BoundShape(1.0, shape.c2, shape.sigma_power, shape.log_power)(np.asarray(sigmas)[:, None], lengths)
    return BoundShape(float(np.max(errors / unit)), shape.c2, shape.sigma_power, shape.log_power)


def tightest_bound(
    sigmas: Sequence[float],
    lengths: Num[np.ndarray, " k"],
    errors: Float[np.ndarray, "s k"],
    *,
    sigma_power: int = 6,
    log_power: int = 1,
) -> BoundShape:
    """Return, of all pairs of constants that bound the errors, the one whose `looseness` is least.

    The looseness is log-convex in c₂, so that a bounded scalar search finds its minimum.

    Args:
      sigmas: values of σ, shape (s,).
      lengths: prompt lengths L ≥ 2, shape (k,).
      errors: measured errors, shape (s, k).
      sigma_power: p of the bound.
      log_power: q of the bound.

    Returns:
      The bound with the best constants.
    """

    def touching(c2: float) -> BoundShape:
        return _touching(BoundShape(1.0, c2, sigma_power, log_power), sigmas, lengths, errors)

    def loosest(c2: float) -> float:
        return looseness(touching(c2)(np.asarray(sigmas)[:, None], lengths), errors)

    # a c₂ beyond the steepest slope, at the largest σ, only lifts c₁
    most = np.max(np.square(sigmas)) * max(np.max(straight_exponents(lengths, errors)), 1.0)
    return touching(float(minimize_scalar(loosest, bounds=(0.0, most), options={"xatol": 1e-10}).x))


def looseness(bound: Float[np.ndarray, "..."], errors: Float[np.ndarray, "..."]) -> float:
    """Return `max log₁₀(bound / error)`, the largest distance of a bound from the errors in powers of ten.

    Args:
      bound: the bound, any shape.
      errors: the errors, of the same shape.

    Returns:
      The looseness.
    """
    return float(np.log10(np.max(bound / errors)))
