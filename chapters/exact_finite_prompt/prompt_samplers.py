"""Outputs of plain prompts and of two samplers that draw the scores of the tokens."""

from dataclasses import dataclass
from functools import partial

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.exact_finite_prompt import plain_prompts
from lib.batching import map_batched
from lib.finite_prompt import QueryRay, sample_output


@dataclass(frozen=True)
class Samplers:
    """Outputs of two samplers of the same distribution, and of a sampler that omits the remainders of the tokens."""

    plain: Float[np.ndarray, "prompts e"]
    collapsed: Float[np.ndarray, "prompts e"]
    scores_only: Float[np.ndarray, "prompts e"]


def simulate_samplers(ray: QueryRay, tau: float, length: int, prompts: int, *, key: PRNGKeyArray) -> Samplers:
    """Return plain and collapsed outputs for one query, from independent keys."""
    plain_key, collapsed_key = jr.split(key)
    (plain,) = np.moveaxis(plain_prompts.simulate_prompts(ray, [tau], length, prompts, key=plain_key), 1, 0)
    sample = partial(sample_output, ray.params, ray.gaussian, ray.queries(tau), length)
    collapsed = map_batched(lambda key: sample(key=key), jr.split(collapsed_key, prompts), size=length)
    # projected onto the line of Lemma 2.1: the output of a sampler that draws only the scores
    scores_only = ray.params.value @ ray.gaussian.mean + jnp.outer(ray.read(collapsed), ray.line)
    return Samplers(plain, np.asarray(collapsed), np.asarray(scores_only))
