"""Exact and simulated mean square errors of the attention output, by size of the query and length of the prompt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from chapters.exact_finite_prompt.plain_prompts import OutputsByLength
from lib.attention import attend, fluctuation
from lib.finite_prompt import QueryRay, output_error


@dataclass(frozen=True)
class ErrorsBySize:
    """Exact and simulated errors for one query size.

    Attributes:
      tau: size of the query.
      log_lengths: ln L on a grid, and of the simulated prompts.
      exact: exact errors at these lengths.
      simulated: places of the simulated lengths among them.
      squares: squared errors of the simulated prompts, one array per length.
      fluctuation_trace: trace of the fluctuation; divided by L it is the error of long prompts.
    """

    tau: float
    log_lengths: Float[np.ndarray, " grid"]
    exact: Float[np.ndarray, " grid"]
    simulated: Int[np.ndarray, " lengths"]
    squares: Sequence[Float[np.ndarray, " prompts"]]
    fluctuation_trace: float


def solve_output_errors(ray: QueryRay, taus: list[float], simulated: OutputsByLength) -> list[ErrorsBySize]:
    """Return, for each query size, exact errors on a grid of lengths and simulated errors at the simulated lengths."""
    grid, lengths = np.linspace(np.log(2.0), 12 * np.log(10.0), 40), np.log(list(simulated))
    queries = ray.queries(taus)
    error = partial(output_error, ray.params, ray.gaussian)
    log_lengths = np.union1d(grid, lengths)
    exact, places = at_lengths(error, queries, log_lengths), np.searchsorted(log_lengths, lengths)
    limits = np.asarray(jax.vmap(partial(attend, ray.params, ray.gaussian))(queries))
    traces = jax.jit(jax.vmap(lambda query: jnp.trace(fluctuation(ray.params, ray.gaussian, query))))(queries)
    errors = []
    for i, tau in enumerate(taus):
        squares = [np.sum((outputs[:, i] - limits[i]) ** 2, axis=1) for outputs in simulated.values()]
        errors.append(ErrorsBySize(tau, log_lengths, exact[:, i], places, squares, float(traces[i])))
    return errors


def at_lengths(
    function: Callable[[Array, float], Array],
    queries: Float[Array, "queries d"],
    log_lengths: Float[np.ndarray, " lengths"],
) -> Float[np.ndarray, "lengths queries ..."]:
    """Return `function(query, log_length)` for all pairs, in a loop, because the library compiles the large parts."""
    return np.asarray([[function(query, log_length) for query in queries] for log_length in log_lengths])
