"""One prompt answers for many: the output after its first L tokens, for as many L as asked."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lib.attention import Attention
from lib.measures import GaussianMixture, empirical

# How many numbers one batch of prompts may hold.
TOGETHER = 2**19


@dataclass(frozen=True)
class Answers:
    """First output of independent prompts, each read at its first L tokens for every L of `lengths`."""

    lengths: Int[np.ndarray, " k"]
    outputs: Float[np.ndarray, "prompts k"]


def lengths_up_to(longest: int) -> Int[np.ndarray, " k"]:
    """Lengths from one token on, evenly spaced in the logarithm, 24 a decade."""
    return np.unique(np.geomspace(1, longest, round(24 * np.log10(longest)) + 1).astype(int))


def read_prefixes(
    params: Attention,
    law: GaussianMixture,
    query: Float[np.ndarray, " d"],
    lengths: Int[np.ndarray, " k"] | list[int],
    prompts: int,
    *,
    key: PRNGKeyArray,
) -> Answers:
    """First output of independent prompts of `law`, each read at its first L tokens for every L of `lengths`."""
    lengths = np.unique(lengths)
    longest = int(lengths.max())

    def one(index):
        points = empirical(law, longest, key=jr.fold_in(key, index)).points
        return prefix_outputs(params, points, query, lengths)[:, 0]

    return Answers(lengths, np.asarray(over_prompts(one, prompts, longest)))


def prefix_outputs(
    params: Attention, points: Float[Array, "n d"], query: Float[np.ndarray, " d"], lengths: Int[np.ndarray, " k"]
) -> Float[Array, "k e"]:
    """`attend` on the first L tokens of a prompt, for each L of `lengths`: running sums in place of many softmaxes."""
    scores = points @ (params.bilinear @ query)
    weights = jnp.exp(scores - scores.max())[:, None]
    sums = jnp.cumsum(weights * points, axis=0)[lengths - 1] / jnp.cumsum(weights, axis=0)[lengths - 1]
    return sums @ params.value.T


@eqx.filter_jit
def over_prompts(one, prompts: int, size: int):
    """`one` of 0, 1, …, prompts - 1, each of about `size` numbers, in batches that fit a cache."""
    batch = max(1, min(prompts, TOGETHER // size))
    rounds = -(-prompts // batch)
    return jax.tree.map(lambda leaf: leaf[:prompts], jax.lax.map(one, jnp.arange(rounds * batch), batch_size=batch))
