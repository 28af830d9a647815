"""The mean error of a finite prompt over prompts and queries, and the rate at which it falls with the length.

[BB26, Prop. 3.1] and [BB26, Prop. 3.4] bound the mean square errors of outputs and gradients in L²(ν). Here they are
measured, for any distribution μ of tokens and any distribution ν of queries: a gap is the integrand at one prompt and
one query, an `ErrorCurve` is its mean at several lengths, whose method `fit_rate` estimates the exponent of a curve
with its error. For isotropic Gaussians `RadialTable.error` is exact.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int
from scipy.special import gammaincc, gammaln

from lib._checks import public
from lib.batching import tabulate
from lib.finite_prompt import score_statistics


class _Rate(eqx.Module):
    """The exponent β of `error ∝ L^-β`, as `ErrorCurve.fit_rate` estimates it. Python numbers.

    Attributes:
      exponent: β.
      std_error: its standard error.
      p_value: the probability of a worse fit if the fitted curve is the true one.
    """

    exponent: float
    std_error: float
    p_value: float

    def interval(self, quantile: float = 1.96) -> tuple[float, float]:
        """Return `exponent ± quantile · std_error`.

        Args:
          quantile: half the width in standard errors; 1.96 for 95 %.

        Returns:
          The two ends.
        """
        return self.exponent - quantile * self.std_error, self.exponent + quantile * self.std_error


# A function of the lengths that `ErrorCurve.fit_rate` adds to the straight line.
_Correction = Callable[[Float[np.ndarray, " k"]], Float[np.ndarray, " k"]]


class ErrorCurve(eqx.Module):
    """Mean errors at several lengths, and the covariance of these means, since lengths may share prompts. NumPy arrays.

    Attributes:
      lengths: prompt lengths, shape (k,).
      mean: mean errors, shape (k,).
      cov: covariance of the means, shape (k, k).
    """

    lengths: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    cov: Float[np.ndarray, "k k"]

    @classmethod
    @public
    def of(cls, lengths: Sequence[int], samples: npt.ArrayLike) -> "ErrorCurve":
        """Return the mean over independent rows and its covariance.

        Args:
          lengths: the k prompt lengths.
          samples: one column per length, shape (n, k), n > k.

        Returns:
          The curve, in NumPy arrays.

        Raises:
          ValueError: if shapes do not fit or there are not more rows than columns.
        """
        rows = np.asarray(samples)
        if rows.ndim != 2 or rows.shape[0] <= rows.shape[1] or len(lengths) != rows.shape[1]:
            raise ValueError(
                "`ErrorCurve.of(lengths, samples)` needs one column per length and more rows than columns, because the "
                f"covariance of the means is estimated from the rows. Got {len(lengths)} lengths and samples of shape "
                f"{rows.shape}."
            )
        cov = np.atleast_2d(np.cov(rows, rowvar=False)) / len(rows)
        return cls(np.asarray(lengths), rows.mean(axis=0), cov)

    @property
    def std_error(self) -> Float[np.ndarray, " k"]:
        """The standard error of each mean."""
        return np.sqrt(np.diagonal(self.cov))

    @public
    def deviations(self, expected: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return `|mean - expected| / std_error`.

        Args:
          expected: the expected means, shape (k,).

        Returns:
          The deviations in standard errors, shape (k,).
        """
        return np.abs(self.mean - expected) / self.std_error

    @public
    def fit_rate(self, *corrections: _Correction) -> _Rate:
        """Fit `ln error = c - β ln L + Σ_j γ_j correction_j(L)` by generalised least squares and return β.

        A straight line through a curve has a slope with a small error and the wrong value. So corrections are fitted
        along, as 1/L (`np.reciprocal`), ln ln L, or both, and their uncertainty widens the error of β, which comes from
        the full covariance of the means (delta method; the mean of a logarithm is corrected to second order). The error
        is valid if the true curve is among those fitted: a small `p_value` shows that it is not, a large one that the
        data cannot tell. The fit is not valid where a few rare prompts carry a mean, or where prompts are not many
        times more numerous than lengths.

        Args:
          *corrections: functions of the lengths that are added to the straight line.

        Returns:
          `.exponent` β, its `.std_error`, and the `.p_value` of the fit; `.interval(probability)` returns a confidence
          interval.

        Raises:
          ValueError: if there are not more lengths than coefficients.
        """
        if len(self.mean) <= 2 + len(corrections):
            raise ValueError(
                f"`fit_rate` fits {2 + len(corrections)} coefficients and needs more lengths than that, because the "
                f"residual shows whether the curve fits. Got {len(self.mean)}."
            )
        length = self.lengths.astype(float)
        basis = np.stack(
            [-np.log(length), np.ones_like(length), *(correction(length) for correction in corrections)], axis=1
        )
        cov = self.cov / np.outer(self.mean, self.mean)
        logs = np.log(self.mean) + np.diagonal(cov) / 2
        root = np.linalg.cholesky(cov)
        white_basis, white_logs = np.linalg.solve(root, basis), np.linalg.solve(root, logs)
        inverse = np.linalg.pinv(white_basis)
        coefficients = inverse @ white_logs
        misfit = np.sum((white_logs - white_basis @ coefficients) ** 2)
        freedom = len(length) - basis.shape[1]
        return _Rate(
            float(coefficients[0]), float(np.linalg.norm(inverse[0])), float(gammaincc(freedom / 2, misfit / 2))
        )


# The largest share of a mean that the nodes of a radial table may miss, at their density and at their end.
_LARGEST_MISSED_SHARE = 1e-6


class RadialTable(eqx.Module):
    """Participation and score error at the nodes of a quadrature in τ (rows) and at several lengths (columns).

    For averages over the length of a query, in NumPy arrays. `lib.icl.ScoreTable` has one length and any τ.

    Attributes:
      tau: nodes in τ, shape (n,).
      weight: weights of the quadrature, shape (n,).
      participation: P = E Σ p², shape (n, k).
      score_error: Q = E (ĝ - τ)², shape (n, k).
    """

    tau: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, "n k"]
    score_error: Float[np.ndarray, "n k"]

    @classmethod
    @public
    def at(cls, log_lengths: npt.ArrayLike, *, largest_tau: float = 20.0, nodes: int = 64) -> "RadialTable":
        """Return the table at Gauss–Legendre nodes on [0, largest_tau]; it serves every dimension and every H.

        Args:
          log_lengths: natural logarithms of the prompt lengths, shape (k,), each between 0 and 330.
          largest_tau: the end of the range, at most 30.
          nodes: number of nodes n.

        Returns:
          The table; 1 to 2 ms per entry.

        Raises:
          ValueError: if float64 is off.
        """
        x, weight = np.polynomial.legendre.leggauss(nodes)
        tau = 0.5 * largest_tau * (1 + x)
        exact = tabulate(score_statistics, tau[:, None] ** 2, np.asarray(log_lengths, float))
        return cls(tau, 0.5 * largest_tau * weight, exact.participation, exact.score_error)

    @public
    def mass(self, operator_norm: float, dimension: int) -> Float[np.ndarray, " n"]:
        """Return the weights of the nodes in an average over `τ = H‖z‖`, z ~ $N(0, I_d)$.

        Args:
          operator_norm: H.
          dimension: d.

        Returns:
          The weights, shape (n,); they add up to 1 where the nodes resolve the density.
        """
        density = np.exp(_log_chi_density(self.tau / operator_norm, dimension))
        return self.weight * density / operator_norm

    @public
    def error(self, operator_norm: float, dimension: int) -> Float[np.ndarray, " k"]:
        """Return `E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)} / σ²` for $μ = N(m, σ²I_d)$, $ν = N(0, I_d)$, U = (H/σ)I, V = I.

        `output_error` is then `σ²(Q + (d - 1)P)` at τ = H‖z‖, and only the average over the length of the query is
        left.

        Args:
          operator_norm: H; the default table resolves 0.4 ≤ H ≤ 2. Smaller H need more nodes, larger H and L a larger
            `largest_tau`, because queries up to τ² = 2 ln L and beyond carry the mean.
          dimension: d; the default table resolves d ≤ 16 at ln L ≤ 28.

        Returns:
          The error, one number per length of the table: relative error below 2e-6 with the default table in the domain
          above. NaN at all lengths where the nodes miss the total probability of τ by 1e-6, and at those where the last
          twentieth of the range of τ contributes more than 1e-6 of the mean.

        Source: derived here, see book/concentration.
        """
        mass = self.mass(operator_norm, dimension)
        terms = mass[:, None] * (self.score_error + (dimension - 1) * self.participation)
        errors = terms.sum(axis=0)
        last = self.tau > 0.95 * self.tau[-1]
        resolved = (abs(mass.sum() - 1) < _LARGEST_MISSED_SHARE) & (
            terms[last].sum(axis=0) < _LARGEST_MISSED_SHARE * errors
        )
        return np.where(resolved, errors, np.nan)


def _log_chi_density(radius: Float[np.ndarray, "..."], dimension: int) -> Float[np.ndarray, "..."]:
    """Return the logarithm of the density of ‖z‖ at positive radii, for z ~ N(0, I_d)."""
    half = dimension / 2
    return (dimension - 1) * np.log(radius) - radius**2 / 2 - (half - 1) * np.log(2) - gammaln(half)
