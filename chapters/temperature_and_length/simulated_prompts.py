"""Simulated prompts of normal scores under each scaling, for comparison with the exact curves.

A plain average of Σp² over prompts is a poor estimate of its mean where rare prompts carry the mean: few simulations
contain such a prompt, and the standard error does not show that it is missing. Therefore one token of each prompt is
averaged exactly, given the others: `E Σp² = L E[p_L²] = L E ∫ sigmoid(τg - ln S')² φ(g) dg`, where S' is the sum of the
other L - 1 simulated exponentials. Only S' is random, and it has no such tail. The typical participation is
`exp E ln Σp²`, a plain average of ln Σp².
"""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.temperature_and_length.normal_scores import typical_participation
from chapters.temperature_and_length.scalings import spreads
from chapters.temperature_and_length.style import MEAN, TYPICAL
from lib.batching import map_batched
from lib.finite_prompt import participation
from lib.partition import square_given_others
from lib.random import fast_normal
from lib.statistics import standard_error


@dataclass(frozen=True)
class Comparison:
    """Simulated participation with its standard error, and the exact one, for one scaling, length and average."""

    scaling: str
    average: str
    log_length: float
    tau: float
    prompts: int
    simulated: float
    std_error: float
    exact: float


def simulate_participation(
    reference: int, ratio: float, counts: Mapping[int, int], *, key: PRNGKeyArray
) -> list[Comparison]:
    """Return comparisons for every scaling and length of `counts`; at one length all scalings share their prompts."""
    comparisons = []
    for length, prompts in counts.items():
        log_length = float(np.log(length))
        taus = {name: float(tau[0]) for name, tau in spreads(reference, ratio, np.asarray([log_length])).items()}
        drawn = draw_prompts(list(taus.values()), length, prompts, key=jr.fold_in(key, length))
        for (name, tau), log_others, log_squares in zip(taus.items(), *drawn, strict=True):
            given_others = length * np.asarray(square_given_others(jnp.asarray(tau), jnp.asarray(log_others)))
            typical = float(np.exp(log_squares.mean()))
            mean = Comparison(
                name,
                MEAN,
                log_length,
                tau,
                prompts,
                float(given_others.mean()),
                float(standard_error(given_others)),
                float(participation(tau, log_length)),
            )
            error = typical * float(standard_error(log_squares))
            exact = typical_participation(tau, log_length)
            comparisons += [mean, Comparison(name, TYPICAL, log_length, tau, prompts, typical, error, exact)]
    return comparisons


def draw_prompts(
    taus: list[float], length: int, prompts: int, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "taus prompts"], Float[np.ndarray, "taus prompts"]]:
    """Return, for each spread τ and prompt, `ln S'` over all scores except the first, and `ln Σp²` over all."""

    def weigh(tau, scores, largest):
        # exponentials in single precision, their sums in double
        weights = jnp.exp((tau * (scores - largest)).astype(jnp.float32))
        total, squares = (jnp.sum(each, dtype=float) for each in (weights, weights**2))
        # sum the others directly: a difference would lose all digits where the first weight is nearly everything
        log_others = tau * largest + jnp.log(jnp.sum(weights[1:], dtype=float))
        return log_others, jnp.log(squares) - 2 * jnp.log(total)

    def one_prompt(index):
        scores = fast_normal(jr.fold_in(key, index), (length,))
        return jax.lax.map(lambda tau: weigh(tau, scores, jnp.max(scores)), jnp.asarray(taus))

    log_others, log_squares = jax.jit(lambda rows: map_batched(one_prompt, rows, size=length))(jnp.arange(prompts))
    return np.asarray(log_others).T, np.asarray(log_squares).T
