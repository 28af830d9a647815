"""Comparison of simulated prompts with the exact theory: mean outputs and mean square errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from chapters.exact_finite_prompt.plain_prompts import OutputsByLength
from lib.attention import attend, fluctuation
from lib.finite_prompt import QueryRay, mean_output, output_error
from lib.statistics import standard_error


@dataclass(frozen=True)
class MeanDeviations:
    """Deviations of the mean outputs of simulated prompts from their expected values, in standard errors, for τ > 0.

    Attributes:
      shrunk: deviations from linear attention times 1 - P, with P from the quadrature.
      unshrunk: deviations from linear attention.
    """

    shrunk: Float[np.ndarray, "lengths taus e"]
    unshrunk: Float[np.ndarray, "lengths taus e"]


@dataclass(frozen=True)
class ErrorsBySize:
    """Exact and simulated errors for one query size.

    Attributes:
      tau: size of the query.
      log_lengths: ln L on a grid.
      exact: exact errors on the grid.
      simulated_log_lengths: ln L of the simulated prompts.
      exact_at_simulated: exact errors at these lengths.
      squares: squared errors of the simulated prompts, one array per length.
      fluctuation_trace: trace of the fluctuation; divided by L it is the error of long prompts.
    """

    tau: float
    log_lengths: Float[np.ndarray, " grid"]
    exact: Float[np.ndarray, " grid"]
    simulated_log_lengths: Float[np.ndarray, " lengths"]
    exact_at_simulated: Float[np.ndarray, " lengths"]
    squares: Sequence[Float[np.ndarray, " prompts"]]
    fluctuation_trace: float


def solve_mean_deviations(ray: QueryRay, taus: list[float], simulated: OutputsByLength) -> MeanDeviations:
    """Return the deviations of mean outputs from linear attention, with and without the factor 1 - P."""
    positive = np.asarray(taus) > 0
    queries = ray.queries(np.asarray(taus)[positive])
    exact = _at_lengths(partial(mean_output, ray.params, ray.gaussian), queries, np.log(list(simulated)))
    limit = np.asarray(jax.vmap(partial(attend, ray.params, ray.gaussian))(queries))

    def deviations(expected) -> Float[np.ndarray, "lengths taus e"]:
        return np.asarray(
            [
                (outputs[:, positive].mean(axis=0) - mean) / standard_error(outputs[:, positive])
                for outputs, mean in zip(simulated.values(), expected, strict=True)
            ]
        )

    return MeanDeviations(deviations(exact), deviations([limit] * len(simulated)))


def solve_output_errors(ray: QueryRay, taus: list[float], simulated: OutputsByLength) -> list[ErrorsBySize]:
    """Return, for each query size, exact errors on a grid of lengths and simulated errors at the simulated lengths."""
    grid, lengths = np.linspace(np.log(2.0), 12 * np.log(10.0), 40), np.log(list(simulated))
    queries = ray.queries(taus)
    error = partial(output_error, ray.params, ray.gaussian)
    exact, exact_at_simulated = np.split(_at_lengths(error, queries, np.append(grid, lengths)), [grid.size])
    limits = np.asarray(jax.vmap(partial(attend, ray.params, ray.gaussian))(queries))
    traces = jax.jit(jax.vmap(lambda query: jnp.trace(fluctuation(ray.params, ray.gaussian, query))))(queries)
    errors = []
    for i, tau in enumerate(taus):
        squares = [np.sum((outputs[:, i] - limits[i]) ** 2, axis=1) for outputs in simulated.values()]
        errors.append(
            ErrorsBySize(tau, grid, exact[:, i], lengths, exact_at_simulated[:, i], squares, float(traces[i]))
        )
    return errors


def _at_lengths(function, queries, log_lengths) -> Float[np.ndarray, "lengths queries ..."]:
    """Return `function(query, log_length)` for all pairs, in a loop, because the library compiles the large parts."""
    return np.asarray([[function(query, log_length) for query in queries] for log_length in log_lengths])
