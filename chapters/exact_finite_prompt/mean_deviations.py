"""Deviations of the mean outputs of simulated prompts from linear attention and from the exact mean."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
from jaxtyping import Float

from chapters.exact_finite_prompt.output_errors import at_lengths
from chapters.exact_finite_prompt.plain_prompts import OutputsByLength
from lib.attention import attend
from lib.finite_prompt import QueryRay, mean_output
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


def solve_mean_deviations(ray: QueryRay, taus: list[float], simulated: OutputsByLength) -> MeanDeviations:
    """Return the deviations of mean outputs from linear attention, with and without the factor 1 - P."""
    positive = np.asarray(taus) > 0
    queries = ray.queries(np.asarray(taus)[positive])
    exact = at_lengths(partial(mean_output, ray.params, ray.gaussian), queries, np.log(list(simulated)))
    limit = np.asarray(jax.vmap(partial(attend, ray.params, ray.gaussian))(queries))

    def deviations(expected) -> Float[np.ndarray, "lengths taus e"]:
        return np.asarray(
            [
                (outputs[:, positive].mean(axis=0) - mean) / standard_error(outputs[:, positive])
                for outputs, mean in zip(simulated.values(), expected, strict=True)
            ]
        )

    return MeanDeviations(deviations(exact), deviations([limit] * len(simulated)))
