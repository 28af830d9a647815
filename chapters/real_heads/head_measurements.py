"""Statistics of every head of the network on prompts of the text: its outputs against the Gaussian prediction."""

from collections.abc import Sequence
from functools import cache, lru_cache

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

# Values τ at which the participation is computed by quadrature, and between which it is interpolated by a spline.
NODES, GRID = LARGEST_TAU * np.linspace(0.0, 1.0, 61) ** 2, np.linspace(0.0, LARGEST_TAU, 6001)


def solve_text_statistics(network: Network | None, lengths: Sequence[int], prompts: int) -> ByLength:
    """Return the statistics of every head on the first `prompts` stretches of the text, cut to each length."""
    if network is None:
        return tracked_tables.text_statistics(lengths)
    return {length: _statistics_and_inputs(network, length, prompts)[0] for length in sorted(lengths)}


def simulate_shuffled_text(network: Network | None, length: int, prompts: int, *, key: PRNGKeyArray) -> HeadStatistics:
    """Return the statistics on the same prompts with their words in random order and special tokens in place."""
    if network is None:
        return tracked_tables.head_statistics("shuffled", length)
    plain = network.prompts(length, prompts)
    words = jr.permutation(key, jnp.asarray(plain[:, 1:-1]), axis=1, independent=True)
    return measure(network, np.concatenate([plain[:, :1], words, plain[:, -1:]], axis=1))


def solve_bare_text_statistics(network: Network | None, length: int, prompts: int) -> HeadStatistics:
    """Return the statistics on the same stretches of text without special tokens."""
    if network is None:
        return tracked_tables.head_statistics("bare", length)
    return measure(network, network.bare(length, prompts))


def measure(network: Network, tokens: Int[np.ndarray, "prompts l"]) -> HeadStatistics:
    """Return the statistics of every head on these prompts."""
    return _measure(network, tokens)[0]


def head_inputs(network: Network, length: int, prompts: int) -> HeadInputs:
    """Return queries, keys and values of every head on the first prompts of one length.

    Each has the shape (prompts, layers, heads, L, 32).
    """
    return _statistics_and_inputs(network, length, prompts)[1]


# Later cells need the last results again; at full length each takes a quarter of a gigabyte.
@lru_cache(maxsize=3)
def _statistics_and_inputs(network: Network, length: int, prompts: int) -> tuple[HeadStatistics, HeadInputs]:
    return _measure(network, network.prompts(length, prompts))


def _measure(network: Network, tokens: Int[np.ndarray, "prompts l"]) -> tuple[HeadStatistics, HeadInputs]:
    length = tokens.shape[1]
    table = jnp.asarray(tabulate_participation(length), jnp.float32)
    means, inputs = _program(network.weights, jnp.asarray(tokens, jnp.int32), table)
    return HeadStatistics(length, **{name: np.asarray(array, np.float64) for name, array in means.items()}), inputs


@cache
def tabulate_participation(length: int) -> Float[np.ndarray, " grid"]:
    """Return the exact participation of Gaussian scores on `GRID`."""
    exact = np.asarray(participation(NODES, np.log(length)))
    return np.exp(CubicSpline(NODES, np.log(exact))(GRID))


def interpolate(tau: Float[Array, "..."], table: Float[Array, " grid"]) -> Float[Array, "..."]:
    """Return the value at `tau` of a function tabulated on `GRID`; beyond the grid, its last value."""
    position = jnp.clip(tau / GRID[1], 0.0, len(GRID) - 1.001)
    below = position.astype(int)
    return table[below] + (position - below).astype(table.dtype) * (table[below + 1] - table[below])


@jax.jit
def _program(weights: Weights, tokens: Int[Array, "prompts l"], table: Float[Array, " grid"]):
    """Return means over queries by name, each of shape (prompts, layers, heads), and the inputs of the heads."""

    def measure_heads(inputs, _):
        outputs, means = jax.lax.map(lambda head: _one_head(head, table), inputs)
        return outputs, (means, inputs)

    return jax.lax.map(lambda prompt: encode(weights, prompt, measure_heads)[1], tokens)


def _one_head(head: HeadInputs, table: Float[Array, " grid"]) -> tuple[Float[Array, "l p"], dict[str, Array]]:
    """Return the outputs of one head, and its statistics averaged over queries.

    Squares and products are those of three prompts: all tokens, all but the first, and all but the middle one.
    """
    scores, length = head.queries @ head.keys.T, len(head.keys)
    exponentials = jnp.exp(scores - scores.max(axis=1, keepdims=True))
    mean = head.values.mean(axis=0)
    values = jnp.pad(head.values - mean, ((0, 0), (0, 1)), constant_values=1.0)
    # sums without both positions, to which each is added back, lose no digits where one token has nearly all weight
    places, added = np.array([0, length // 2]), np.array([[1, 1], [0, 1], [1, 0]], scores.dtype)
    sums = exponentials @ values.at[places].set(0.0)
    sums = sums + jnp.einsum("sa,qa,ap->sqp", added, exponentials[:, places], values[places])
    kept = jnp.ones((3, length), scores.dtype).at[:, places].set(added)[:, :, None]
    counts = kept.sum(axis=1, keepdims=True)
    means = jnp.sum(kept * values[:, :-1], axis=1, keepdims=True) / counts
    outputs = sums[..., :-1] / sums[..., -1:] - means
    linear = head.queries @ (head.keys.T @ (kept * (values[:, :-1] - means)) / counts)
    squares = {
        "output": jnp.sum(outputs**2, axis=2),
        "linear": jnp.sum(linear**2, axis=2),
        "product": jnp.sum(outputs * linear, axis=2),
    }
    total = sums[0, :, -1]
    centred = scores - scores.mean(axis=1, keepdims=True)
    tau = jnp.sqrt(jnp.mean(centred**2, axis=1))
    expected = interpolate(tau, table)
    statistics = {
        "tau": tau,
        "participation": jnp.sum(exponentials**2, axis=1) / total**2,
        "gaussian": expected,
        "shrunk": (1 - expected) * squares["linear"][0],
        "first": exponentials[:, 0] / total,
        "skewness": jnp.mean(centred**3, axis=1) / tau**3,
        "tails": jnp.mean(centred**4, axis=1) / tau**4 - 3.0,
    }
    for index, part in enumerate(("", "rest_", "gap_")):
        statistics |= {f"{part}{name}": array[index] for name, array in squares.items()}
    return mean + outputs[0], {name: array.mean() for name, array in statistics.items()}
