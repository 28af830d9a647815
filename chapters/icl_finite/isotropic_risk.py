"""The risk of heads A = uI for Σ = I, where only the length of the query is left to average over."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

from lib.icl import ScoreTable

# Nodes for the length of a query.
RADII = 64


class QueryLengths(NamedTuple):
    """Nodes and weights for the length r of x ~ N(0, I) in R^d; d is a number, so that programs serve all d."""

    dimension: Float[Array, ""]
    radii: Float[Array, " n"]
    weights: Float[Array, " n"]

    @classmethod
    def of_dimension(cls, d: int) -> "QueryLengths":
        """Return the nodes in dimension d."""
        return cls(*map(jnp.asarray, (float(d), *radial(d, RADII))))

    def means(
        self, u: float | Float[Array, ""], scores: ScoreTable
    ) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
        """Return `E r²`, `E r² P` and `E (Q + (d - 1) P)` at τ = ur, of which the risk is made."""
        squares = self.radii**2
        statistics = jax.vmap(scores.statistics)(u**2 * squares)
        errors = statistics.score_error + (self.dimension - 1) * statistics.participation
        return self.weights @ squares, self.weights @ (squares * statistics.participation), self.weights @ errors


def isotropic_risk(
    u: float | Float[Array, ""], gain: float | Float[Array, ""], scores: ScoreTable, queries: QueryLengths
) -> Float[Array, ""]:
    """Return `½ E[(1 - bu)² r² + 2bu (1 - bu) r² P + b² (Q + (d - 1) P)]`, the `block_risk` of A = uI and b = gain."""
    size, shared, error = queries.means(u, scores)
    learned = gain * u
    return 0.5 * ((1 - learned) ** 2 * size + 2 * learned * (1 - learned) * shared + gain**2 * error)


def radial(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return n radii up to √d + 10 and weights of sum 1, for the length of a standard normal vector of R^d."""
    unit, width = np.polynomial.legendre.leggauss(n)
    radius = (d**0.5 + 10) * (unit + 1) / 2
    return radius, softmax(np.log(width) + (d - 1) * np.log(radius) - radius**2 / 2)
