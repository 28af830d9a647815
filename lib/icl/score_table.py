"""Participation and score error of one prompt length as a table: exact to 1e-9, and nearly free to evaluate.

A risk averages them over thousands of (task, query) pairs, at each of thousands of parameters; at one length they are
two smooth functions of τ² alone. The logarithms are Chebyshev series on panels in τ².
"""

from collections.abc import Iterable
from itertools import groupby

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_context
from jaxtyping import Array, Float, Int

from lib._checks import as_array, as_float, is_concrete, public
from lib._namespace import constant, known, namespace
from lib._types import AnyArray, Scalar, Scalars
from lib.finite_prompt import LARGEST_TAU, _ScoreStatistics, score_statistics

_NODES = 16  # Chebyshev nodes a panel
# Panels [0, ½], … [1½, 2], [2, 3], … [29, 30] in τ: the two functions vary fastest, for their size, near zero.
_EDGES = np.concatenate([np.arange(0.0, 2.0, 0.5), np.arange(2.0, LARGEST_TAU + 1)])
_ANGLES = np.pi * (np.arange(_NODES) + 0.5) / _NODES
_POINTS = np.cos(_ANGLES)
# values at the points ↦ Chebyshev coefficients
_TRANSFORM = 2 / _NODES * np.cos(np.outer(np.arange(_NODES), _ANGLES))
_TRANSFORM[0] /= 2
# Tables are computed together if their ln L are in one interval of this width: tables farther apart share few nodes.
_INTERVAL = 50.0
_MOST_TABLES = 1024  # in the cache, of 8 kB each


class ScoreTable(eqx.Module):
    """`log P` and `log Q` of prompts of `exp(log_length)` Gaussian tokens, as piecewise polynomials in τ².

    Their relative error is at most 1e-9 for τ ≤ 30 (tested against `score_statistics`; 1e-10 except for the shortest
    prompts). Beyond, where one token has all the weight, the distribution of ĝ is that of τ = 30. A table needs 512
    quadratures and takes about a second; twenty tables of similar lengths take little more if `ScoreTable.at_each`
    makes them together. `ScoreTable.at` and `at_each` keep the last thousand of their tables.

    Args:
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330; or (...) for a stack.

    Attributes:
      log_participation: Chebyshev coefficients of log P, shape (panels, nodes).
      log_score_error: Chebyshev coefficients of log Q, shape (panels, nodes).

    Raises:
      ValueError: if float64 is off.
    """

    log_participation: Float[AnyArray, "*lengths panels nodes"]
    log_score_error: Float[AnyArray, "*lengths panels nodes"]

    def __init__(self, log_length: Scalars):
        low, high = _EDGES[:-1, None] ** 2, _EDGES[1:, None] ** 2
        nodes = low + (high - low) * (_POINTS + 1) / 2
        exact = score_statistics(as_float(nodes), known(as_float(log_length))[..., None, None])
        self.log_participation = _log_coefficients(exact.participation)
        self.log_score_error = _log_coefficients(exact.score_error)

    @public
    def statistics(self, tau_squared: Scalars) -> _ScoreStatistics:
        """Return participation P and score error Q at τ².

        Args:
          tau_squared: τ² ≥ 0, any shape.

        Returns:
          P and Q, of the same shape; arrays of NumPy for one of NumPy and a table of them.

        Transformations: jit, vmap, grad.
        """
        xp = namespace(tau_squared, self.log_participation, self.log_score_error)
        inside = xp.minimum(tau_squared, LARGEST_TAU**2)
        tau = xp.sqrt(*constant(inside))
        panel = xp.minimum(xp.minimum(2 * tau, tau + 2).astype(int), _EDGES.size - 2)
        low, high = xp.asarray(_EDGES[:-1] ** 2)[panel], xp.asarray(_EDGES[1:] ** 2)[panel]
        x = (2 * inside - low - high) / (high - low)
        p, q = xp.exp(_chebyshev((self.log_participation, self.log_score_error), panel, x))
        # frozen: E ĝ = τ(1 - P) and E ĝ² stay what they are at the largest τ; inside, `tau` is that and nothing changes
        tau = xp.sqrt(xp.maximum(tau_squared, LARGEST_TAU**2))
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
        return cls.at_each([log_length])[0] if is_concrete(log_length) else cls(log_length)

    @classmethod
    @public
    def at_each(cls, log_lengths: Iterable[Scalar]) -> list["ScoreTable"]:
        """Return the tables of several lengths. Those missing in the cache are computed together.

        Args:
          log_lengths: natural logarithms of the prompt lengths, not traced, each as in `at`.

        Returns:
          One table per length.

        Raises:
          ValueError: if float64 is off.

        Transformations: none.
        """
        log_lengths = [float(log_length) for log_length in log_lengths]
        missing = sorted(set(log_lengths) - _tables.keys())
        for _, interval in groupby(missing, lambda log_length: log_length // _INTERVAL):
            _remember(list(interval))
        tables = [jax.tree.map(as_array, _tables[log_length]) for log_length in log_lengths]
        for oldest in list(_tables)[:-_MOST_TABLES]:
            del _tables[oldest]
        return tables


_tables: dict[float, ScoreTable] = {}


def _remember(log_lengths: list[float]) -> None:
    """Compute tables of several lengths, whose quadratures share their nodes."""
    with eval_context():
        stack = jax.tree.map(np.asarray, ScoreTable(np.asarray(log_lengths)))
    for place, log_length in enumerate(log_lengths):
        _tables[log_length] = jax.tree.map(lambda leaf, place=place: leaf[place], stack)


def _log_coefficients(values: Float[AnyArray, "*lengths panels nodes"]) -> Float[Array, "*lengths panels nodes"]:
    """Return the Chebyshev coefficients of the logarithms of positive values at the nodes."""
    values = known(values)
    return as_array(namespace(values).log(values) @ _TRANSFORM.T)


def _chebyshev(
    tables: tuple[Float[AnyArray, "panels n"], ...], panel: Int[AnyArray, "*batch"], x: Float[AnyArray, "*batch"]
) -> Float[AnyArray, "series *batch"]:
    """Return `Σ c_k T_k(x)` with the coefficients of the panel in each table, by Clenshaw's recurrence."""
    xp = namespace(*tables, panel, x)
    # XLA gathers whole rows fastest, NumPy one column after the other
    rows = xp.stack([table[panel] for table in tables]) if xp is jnp else None

    def column(k):
        return np.stack([table[:, k][panel] for table in tables]) if rows is None else rows[..., k]

    ahead = further = xp.zeros_like(x)
    for k in range(_NODES - 1, 0, -1):
        ahead, further = 2 * x * ahead - further + column(k), ahead
    return x * ahead - further + column(0)
