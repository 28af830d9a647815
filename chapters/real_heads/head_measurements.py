"""Every head of the network on prompts of the text: softmax attention against the Gaussian prediction."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.interpolate import CubicSpline

from chapters.real_heads import tracked_tables
from chapters.real_heads.encoder import HeadInputs, Weights, encode
from chapters.real_heads.network import Network
from chapters.real_heads.statistics import ByLength, HeadStatistics
from lib.finite_prompt import LARGEST_TAU, participation
from lib.heads import compare

# τ at which the exact participation is tabulated: by quadrature, then in between by a spline of its logarithm.
NODES, GRID = np.linspace(0.0, LARGEST_TAU, 121), np.linspace(0.0, LARGEST_TAU, 6001)


class Keys(NamedTuple):
    """One key a simulation of the chapter."""

    words: PRNGKeyArray
    gaussian: PRNGKeyArray
    again: PRNGKeyArray
    drawn: PRNGKeyArray
    resamples: PRNGKeyArray


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(*jr.split(jr.key(seed), len(Keys._fields)))


def follow(network: Network | None, lengths: Sequence[int], prompts: int) -> ByLength:
    """Every head on the first `prompts` stretches of the text, cut to each length."""
    if network is None:
        return tracked_tables.followed(lengths)
    return {length: _followed(network, length, prompts)[0] for length in sorted(lengths)}


def shuffle(network: Network | None, length: int, prompts: int, *, key: PRNGKeyArray) -> HeadStatistics:
    """The same prompts of one length with the words of each in random order, special tokens staying where they are."""
    if network is None:
        return tracked_tables.of_kind("shuffled", length)
    plain = network.prompts(length, prompts)
    words = jr.permutation(key, jnp.asarray(plain[:, 1:-1]), axis=1, independent=True)
    return measure(network, np.concatenate([plain[:, :1], words, plain[:, -1:]], axis=1))


def strip(network: Network | None, length: int, prompts: int) -> HeadStatistics:
    """The same stretches of text without special tokens."""
    if network is None:
        return tracked_tables.of_kind("bare", length)
    return measure(network, network.bare(length, prompts))


def measure(network: Network, tokens: Int[np.ndarray, "prompts l"]) -> HeadStatistics:
    """Every head on these prompts."""
    return _measure(network, tokens)[0]


def seen_by_heads(network: Network, length: int, prompts: int) -> HeadInputs:
    """Queries, keys and values of every head on the first prompts of one length, (prompts, layers, heads, L, 32)."""
    return _followed(network, length, prompts)[1]


# The last answers are kept, for they are asked for again: at full length each is a quarter of a gigabyte.
@lru_cache(maxsize=3)
def _followed(network: Network, length: int, prompts: int) -> tuple[HeadStatistics, HeadInputs]:
    return _measure(network, network.prompts(length, prompts))


def _measure(network: Network, tokens: Int[np.ndarray, "prompts l"]) -> tuple[HeadStatistics, HeadInputs]:
    length = tokens.shape[1]
    table = jnp.asarray(tabulated(length), jnp.float32)
    means, seen = _program(network.weights, jnp.asarray(tokens, jnp.int32), table)
    return HeadStatistics(length, **{name: np.asarray(array, np.float64) for name, array in means.items()}), seen


@cache
def tabulated(length: int) -> Float[np.ndarray, " grid"]:
    """The exact participation of Gaussian scores on `GRID`."""
    exact = np.asarray(participation(NODES, np.log(length)))
    return np.exp(CubicSpline(NODES, np.log(exact))(GRID))


def at(tau: Float[Array, "..."], table: Float[Array, " grid"]) -> Float[Array, "..."]:
    """A function tabulated on `GRID`, at `tau`; beyond the grid its last value."""
    place = jnp.clip(tau / GRID[1], 0.0, len(GRID) - 1.001)
    below = place.astype(int)
    return table[below] + (place - below).astype(table.dtype) * (table[below + 1] - table[below])


@jax.jit
def _program(weights: Weights, tokens: Int[Array, "prompts l"], table: Float[Array, " grid"]):
    """Means over queries, by name, each (prompts, layers, heads), and what the heads were given."""

    def see(inputs, given):
        outputs, means = jax.lax.map(lambda head: _one_head(head, table), inputs)
        return outputs, (means, inputs)

    return jax.lax.map(lambda prompt: encode(weights, prompt, see)[1], tokens)


def _one_head(head: HeadInputs, table: Float[Array, " grid"]) -> tuple[Float[Array, "l p"], dict[str, Array]]:
    """One head's outputs, and its means over queries."""
    scores, middle = head.queries @ head.keys.T, len(head.keys) // 2
    weights = jax.nn.softmax(scores, axis=1)
    found = compare(scores, head.values)
    rest = compare(scores[:, 1:], head.values[1:])
    gap = compare(jnp.delete(scores, middle, axis=1), jnp.delete(head.values, middle, axis=0))
    expected = at(found.tau, table)
    standard = (scores - scores.mean(axis=1, keepdims=True)) / found.tau[:, None]
    kept = {
        "tau": found.tau,
        "participation": found.participation,
        "gaussian": expected,
        "shrunk": (1 - expected) * found.linear,
        "first": weights[:, 0],
        "skewness": jnp.mean(standard**3, axis=1),
        "tails": jnp.mean(standard**4, axis=1) - 3.0,
    }
    for name, part in {"": found, "rest_": rest, "gap_": gap}.items():
        kept |= {f"{name}{square}": getattr(part, square) for square in ("output", "linear", "product")}
    return weights @ head.values, {name: array.mean() for name, array in kept.items()}
