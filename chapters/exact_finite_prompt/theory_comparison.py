"""What the exact theory says of the simulated prompts: their mean outputs, and their mean square errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from chapters.exact_finite_prompt.plain_prompts import ByLength
from lib.attention import attend, fluctuation
from lib.finite_prompt import QueryRay, mean_output, output_error
from lib.statistics import standard_error


@dataclass(frozen=True)
class MeanDeviations:
    """Mean outputs of simulated prompts less what is expected of them, in standard errors, at every τ > 0.

    Expected is linear attention, shrunk by 1 - P with P from the quadrature, or not shrunk.
    """

    shrunk: Float[np.ndarray, "lengths taus e"]
    unshrunk: Float[np.ndarray, "lengths taus e"]


@dataclass(frozen=True)
class ErrorsBySize:
    """Of one query size: exact errors on a grid of lengths; where prompts are simulated, exact and one a prompt.

    `noise` is `tr fluctuation`, to be divided by L: the large-L form.
    """

    tau: float
    log_lengths: Float[np.ndarray, " grid"]
    exact: Float[np.ndarray, " grid"]
    simulated_log_lengths: Float[np.ndarray, " lengths"]
    exact_there: Float[np.ndarray, " lengths"]
    squares: Sequence[Float[np.ndarray, " prompts"]]
    noise: float


def compare_means(ray: QueryRay, taus: list[float], simulated: ByLength) -> MeanDeviations:
    """Mean outputs of plain prompts against linear attention shrunk by 1 - P, coordinate by coordinate."""
    asked = np.asarray(taus) > 0
    queries = ray.queries(np.asarray(taus)[asked])
    exact = _at_lengths(partial(mean_output, ray.params, ray.gaussian), queries, np.log(list(simulated)))
    limit = np.asarray(jax.vmap(partial(attend, ray.params, ray.gaussian))(queries))

    def deviations(expected) -> Float[np.ndarray, "lengths taus e"]:
        return np.asarray(
            [
                (outputs[:, asked].mean(axis=0) - mean) / standard_error(outputs[:, asked])
                for outputs, mean in zip(simulated.values(), expected, strict=True)
            ]
        )

    return MeanDeviations(deviations(exact), deviations([limit] * len(simulated)))


def compare_errors(ray: QueryRay, taus: list[float], simulated: ByLength) -> list[ErrorsBySize]:
    """By query size: exact error on a fine grid of lengths, simulated error where there are prompts."""
    fine, there = np.linspace(np.log(2.0), 12 * np.log(10.0), 40), np.log(list(simulated))
    queries = ray.queries(taus)
    error = partial(output_error, ray.params, ray.gaussian)
    exact, exact_there = np.split(_at_lengths(error, queries, np.append(fine, there)), [fine.size])
    limits = np.asarray(jax.vmap(partial(attend, ray.params, ray.gaussian))(queries))
    noise = jax.jit(jax.vmap(lambda query: jnp.trace(fluctuation(ray.params, ray.gaussian, query))))(queries)
    errors = []
    for i, tau in enumerate(taus):
        squares = [np.sum((outputs[:, i] - limits[i]) ** 2, axis=1) for outputs in simulated.values()]
        errors.append(ErrorsBySize(tau, fine, exact[:, i], there, exact_there[:, i], squares, float(noise[i])))
    return errors


def _at_lengths(function, queries, log_lengths) -> Float[np.ndarray, "lengths queries ..."]:
    """A function of a query and a length, of all pairs: one by one, since the library has compiled what is large."""
    return np.asarray([[function(query, log_length) for query in queries] for log_length in log_lengths])
