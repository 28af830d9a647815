"""The mean error of a finite prompt over prompts and queries, exactly, for isotropic Gaussian tokens and queries.

[BB26, Prop. 3.1] bounds the mean square error of outputs in L²(ν). At one query it is `output_error` of
`lib.finite_prompt`; only the average over the length of the query is left: `σ² E [Q(τ) + (d - 1) P(τ)]` over τ = H‖z‖,
z ~ $N(0, I_d)$, a quadrature in τ. Derived here, see book/concentration.
"""

import equinox as eqx
import numpy as np
import numpy.typing as npt
from jaxtyping import Float
from scipy.special import gammaln

from lib._checks import public
from lib.finite_prompt import score_statistics

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
        exact = score_statistics(tau[:, None] ** 2, np.asarray(log_lengths, float))
        return cls(tau, 0.5 * largest_tau * weight, *map(np.asarray, (exact.participation, exact.score_error)))

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
