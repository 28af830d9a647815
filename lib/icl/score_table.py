"""Participation and score error of one prompt length as a table: exact to 1e-9, and nearly free to evaluate.

A risk averages them over thousands of (task, query) pairs, at each of thousands of parameters; at one length they are
two smooth functions of τ² alone.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float

from lib._checks import as_float, is_concrete, public
from lib._types import Scalar
from lib.finite_prompt import LARGEST_TAU, _ScoreStatistics, score_statistics

_NODES = 16  # Chebyshev nodes a panel
# Panels [0, ½], … [1½, 2], [2, 3], … [29, 30] in τ: the two functions vary fastest, for their size, near zero.
_EDGES = np.concatenate([np.arange(0.0, 2.0, 0.5), np.arange(2.0, LARGEST_TAU + 1)])
_ANGLES = np.pi * (np.arange(_NODES) + 0.5) / _NODES
_POINTS = np.cos(_ANGLES)
# values at the points ↦ Chebyshev coefficients
_TRANSFORM = 2 / _NODES * np.cos(np.outer(np.arange(_NODES), _ANGLES))
_TRANSFORM[0] /= 2


class ScoreTable(eqx.Module):
    """`log P` and `log Q` of prompts of `exp(log_length)` Gaussian tokens, as piecewise polynomials in τ².

    Their relative error is at most 1e-9 for τ ≤ 30 (tested against `score_statistics`; 1e-10 except for the shortest
    prompts). Beyond, where one token has all the weight, the distribution of ĝ is that of τ = 30. A table needs 512
    quadratures, about a second; `ScoreTable.at` keeps those of lengths that are known before tracing.

    Args:
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Attributes:
      log_participation: Chebyshev coefficients of log P, shape (panels, nodes).
      log_score_error: Chebyshev coefficients of log Q, shape (panels, nodes).

    Raises:
      ValueError: if float64 is off.
    """

    log_participation: Float[Array, "*lengths panels nodes"]
    log_score_error: Float[Array, "*lengths panels nodes"]

    def __init__(self, log_length: Scalar):
        low, high = _EDGES[:-1, None] ** 2, _EDGES[1:, None] ** 2
        nodes = low + (high - low) * (_POINTS + 1) / 2
        exact = score_statistics(as_float(nodes), log_length)
        self.log_participation = jnp.log(exact.participation) @ _TRANSFORM.T
        self.log_score_error = jnp.log(exact.score_error) @ _TRANSFORM.T

    @public
    def statistics(self, tau_squared: Scalar) -> _ScoreStatistics:
        """Return participation P and score error Q at τ².

        Args:
          tau_squared: τ² ≥ 0, shape ().

        Returns:
          P and Q, of shape ().

        Transformations: jit, vmap, grad.
        """
        tau_squared = as_float(tau_squared)
        inside = jnp.minimum(tau_squared, LARGEST_TAU**2)
        tau = jnp.sqrt(jax.lax.stop_gradient(inside))
        panel = jnp.minimum(jnp.minimum(2 * tau, tau + 2).astype(int), _EDGES.size - 2)
        low, high = jnp.asarray(_EDGES[:-1] ** 2)[panel], jnp.asarray(_EDGES[1:] ** 2)[panel]
        x = (2 * inside - low - high) / (high - low)
        p = jnp.exp(_chebyshev(self.log_participation[panel], x))
        q = jnp.exp(_chebyshev(self.log_score_error[panel], x))
        # frozen: E ĝ = τ(1 - P) and E ĝ² stay what they are at the largest τ; inside, `tau` is that and nothing changes
        tau = jnp.sqrt(jnp.maximum(tau_squared, LARGEST_TAU**2))
        frozen_share = LARGEST_TAU / tau
        return _ScoreStatistics(
            1 - frozen_share + frozen_share * p,
            q + (tau - LARGEST_TAU) * (tau + LARGEST_TAU - 2 * LARGEST_TAU * (1 - p)),
        )

    @classmethod
    @public
    def at(cls, log_length: Scalar) -> "ScoreTable":
        """Return the table of one length, from a cache where `log_length` is a number, also inside `jit`.

        Args:
          log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330. A traced one builds the
            table in the trace, at each call.

        Returns:
          The table.

        Raises:
          ValueError: if float64 is off.

        Transformations: jit, vmap, grad.
        """
        if not is_concrete(log_length):
            return cls(log_length)
        return jax.tree.map(jnp.asarray, _remembered(float(log_length)))


@lru_cache(maxsize=256)
def _remembered(log_length: float) -> ScoreTable:
    with eval_context():
        return jax.tree.map(np.asarray, ScoreTable(log_length))


def _chebyshev(coefficients: Float[Array, " n"], x: Float[Array, ""]) -> Float[Array, ""]:
    """Clenshaw's recurrence for `Σ c_k T_k(x)`."""
    ahead = further = jnp.zeros_like(x)
    for k in range(_NODES - 1, 0, -1):
        ahead, further = 2 * x * ahead - further + coefficients[k], ahead
    return x * ahead - further + coefficients[0]
