"""One prompt answers for many: the output after its first L tokens, for as many L as asked, and what it tends to."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lib.attention import Attention, attend, fluctuation
from lib.batching import map_batched
from lib.measures import GaussianMixture, empirical, tilted_cov, tilted_mean

# How many numbers one batch of prompts may hold: running sums are cheap, and a larger batch costs fewer calls.
TOGETHER = 2**19


@dataclass(frozen=True)
class LawAnswer:
    """Of the first output: its limit, `lim L · Var`, and what two simpler theories say instead.

    `untilted` is the mean without the tilt. `counted` is the variance by counting the tokens that matter: as if
    `L / e^{Λ(2ξ) - 2Λ(ξ)}` of them were averaged, each with the tilted covariance.
    """

    limit: float
    variance: float
    untilted: float
    counted: float

    def spread(self, length):
        """The standard deviation that prompts of such a length should have, for long ones."""
        return np.sqrt(self.variance / length)


def predict(params: Attention, law: GaussianMixture, query: Float[np.ndarray, " d"]) -> LawAnswer:
    """`attend` and `fluctuation` on the law."""

    @jax.jit
    def compute(params, law, query):
        untilted = params.value @ tilted_mean(law, jnp.zeros(2))
        tilt, first = params.bilinear @ query, params.value[0]
        counted = jnp.exp(law.log_mgf(2 * tilt) - 2 * law.log_mgf(tilt)) * first @ tilted_cov(law, tilt) @ first
        return attend(params, law, query)[0], fluctuation(params, law, query)[0, 0], untilted[0], counted

    return LawAnswer(*map(float, compute(params, law, query)))


@dataclass(frozen=True)
class PrefixAnswers:
    """First output of independent prompts, each read at its first L tokens for every L of `lengths`."""

    lengths: Int[np.ndarray, " k"]
    outputs: Float[np.ndarray, "prompts k"]

    @property
    def longest(self) -> int:
        """The largest L."""
        return int(self.lengths[-1])

    @property
    def in_the_end(self) -> Float[np.ndarray, " prompts"]:
        """The outputs there."""
        return self.outputs[:, -1]


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
) -> PrefixAnswers:
    """First output of independent prompts of `law`, each read at its first L tokens for every L of `lengths`."""
    lengths = np.unique(lengths)
    longest = int(lengths.max())

    def one(index):
        points = empirical(law, longest, key=jr.fold_in(key, index)).points
        return prefix_outputs(params, points, query, lengths)[:, 0]

    outputs = map_batched(one, jnp.arange(prompts), size=longest, together=TOGETHER)
    return PrefixAnswers(lengths, np.asarray(outputs))


def prefix_outputs(
    params: Attention, points: Float[Array, "n d"], query: Float[np.ndarray, " d"], lengths: Int[np.ndarray, " k"]
) -> Float[Array, "k e"]:
    """`attend` on the first L tokens of a prompt, for each L of `lengths`: running sums in place of many softmaxes."""
    scores = points @ (params.bilinear @ query)
    weights = jnp.exp(scores - scores.max())[:, None]
    sums = jnp.cumsum(weights * points, axis=0)[lengths - 1] / jnp.cumsum(weights, axis=0)[lengths - 1]
    return sums @ params.value.T
