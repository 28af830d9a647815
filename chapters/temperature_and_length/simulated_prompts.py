"""Prompts of real scores, weighed under each scaling: what the exact curves are compared with.

A plain average of Σp² over prompts would be a poor judge of its mean: where rare prompts carry it, few simulations
have one, and their standard error does not say so. So one token of each prompt is averaged exactly, given the others:
`E Σp² = L E[p_L²] = L E ∫ sigmoid(τg - ln S')² φ(g) dg`, S' being the sum of the other L - 1 exponentials, as drawn.
What is left to chance is S', which has no such tail. The typical participation is `exp E ln Σp²`, and ln Σp² is drawn
as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.temperature_and_length.scalings import spreads
from chapters.temperature_and_length.style import MEAN, TYPICAL
from lib.batching import map_batched
from lib.finite_prompt import participation, typical_participation
from lib.icl import fast_normal
from lib.partition import square_given_others
from lib.statistics import standard_error


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    scores: PRNGKeyArray
    retrieval: PRNGKeyArray
    regression: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """A NumPy generator of its own for a key: for draws of many shapes, which JAX would compile one by one."""
    return np.random.default_rng(np.asarray(jr.key_data(key)))


@dataclass(frozen=True)
class Comparison:
    """Of one scaling, one length and one average: participation as simulated, with its error, and as computed."""

    scaling: str
    average: str
    log_length: float
    tau: float
    prompts: int
    simulated: float
    std_error: float
    exact: float


def compare(reference: int, ratio: float, counts: Mapping[int, int], *, key: PRNGKeyArray) -> list[Comparison]:
    """Every scaling at every length of `counts`, weighing the same prompts."""
    found = []
    for length, prompts in counts.items():
        log_length = float(np.log(length))
        taus = {name: float(tau[0]) for name, tau in spreads(reference, ratio, np.asarray([log_length])).items()}
        drawn = draw(list(taus.values()), length, prompts, key=jr.fold_in(key, length))
        for (name, tau), log_others, log_squares in zip(taus.items(), *drawn, strict=True):
            given_others = length * np.asarray(square_given_others(jnp.asarray(tau), jnp.asarray(log_others)))
            typical = float(np.exp(log_squares.mean()))
            known = Comparison(
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
            exact = float(typical_participation(tau, log_length))
            found += [known, Comparison(name, TYPICAL, log_length, tau, prompts, typical, error, exact)]
    return found


def draw(
    taus: list[float], length: int, prompts: int, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "taus prompts"], Float[np.ndarray, "taus prompts"]]:
    """Of each prompt, weighed at each spread τ: `ln S'`, over all scores but one, and `ln Σp²`, over all."""

    def weigh(tau, scores, largest):
        # exponentials in single precision, their sums in double
        weights = jnp.exp((tau * (scores - largest)).astype(jnp.float32))
        total, squares = (jnp.sum(each, dtype=float) for each in (weights, weights**2))
        # over all but one by itself, not as a difference: that one may be nearly all
        log_others = tau * largest + jnp.log(jnp.sum(weights[1:], dtype=float))
        return log_others, jnp.log(squares) - 2 * jnp.log(total)

    def one_prompt(index):
        scores = fast_normal(jr.fold_in(key, index), (length,))
        return jax.lax.map(lambda tau: weigh(tau, scores, jnp.max(scores)), jnp.asarray(taus))

    log_others, log_squares = jax.jit(lambda rows: map_batched(one_prompt, rows, size=length))(jnp.arange(prompts))
    return np.asarray(log_others).T, np.asarray(log_squares).T
