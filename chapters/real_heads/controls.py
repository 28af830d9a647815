"""Simulated prompts with the queries of the heads: Gaussian tokens, and independent tokens of the text.

Queries come from the text and are not part of the simulated prompts, because a query that is a token of its own prompt
is not independent of it. The scores of each query have their own spread τ, so the expectation for a head is a mean over
its queries.
"""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.real_heads import tracked_tables
from chapters.real_heads.encoder import HEAD_WIDTH, HEADS, LAYERS
from chapters.real_heads.head_comparison import compare, explained_share
from chapters.real_heads.head_measurements import head_inputs, interpolate, tabulate_participation
from chapters.real_heads.network import Network
from chapters.real_heads.statistics import Control
from lib.finite_prompt import LARGEST_TAU
from lib.partition import square_given_others

# Number of queries per head, the same in every simulated prompt.
QUERIES = 64
# Added to the diagonal of a covariance, relative to its trace: its rounding in float32, so that it stays positive.
JITTER = 1e-7


def simulate_gaussian_tokens(
    network: Network | None, lengths: list[int], prompts: int, drawn: int, *, key: PRNGKeyArray, name: str = "gaussian"
) -> Mapping[int, Control]:
    """Return the statistics on Gaussian tokens with the mean and covariance of each head's keys and values on the text.

    There are `drawn` prompts per head and length; `name` selects the tracked rows that are used without the network.
    """
    if network is None:
        return {length: tracked_tables.control(name, length) for length in lengths}
    return {
        length: _simulate(network, length, prompts, drawn, _gaussian_tokens, key=jr.fold_in(key, length))
        for length in sorted(lengths)
    }


def simulate_independent_tokens(
    network: Network | None, length: int, prompts: int, drawn: int, *, key: PRNGKeyArray
) -> Control:
    """Return the statistics on tokens that are drawn independently from all prompts of the text."""
    if network is None:
        return tracked_tables.control("independent", length)
    return _simulate(network, length, prompts, drawn, _tokens_of_text, key=key)


def _simulate(network: Network, length: int, prompts: int, draws: int, tokens, *, key: PRNGKeyArray) -> Control:
    """Return the statistics on `draws` prompts of `tokens(key, length, pairs, moments)` per head."""
    query_key, token_key = jr.split(key)
    inputs = head_inputs(network, length, prompts)
    # from (prompts, layers, heads, L, 32) to (heads of all layers, tokens of all prompts, 32)
    queries, keys, values = (jnp.moveaxis(part, 0, 2).reshape(LAYERS * HEADS, -1, HEAD_WIDTH) for part in inputs)
    chosen = queries[:, jr.choice(query_key, queries.shape[1], (QUERIES,), replace=False)]
    pairs = jnp.concatenate([keys, values], axis=2)
    means = pairs.mean(axis=1)
    covariances = np.asarray([np.cov(np.asarray(of_head, np.float64).T, bias=True) for of_head in pairs])
    roots = np.linalg.cholesky(
        covariances + JITTER * np.trace(covariances, axis1=1, axis2=2)[:, None, None] * np.eye(2 * HEAD_WIDTH)
    )
    table = jnp.asarray(tabulate_participation(length), jnp.float32)
    moments = (means, jnp.asarray(covariances, jnp.float32), jnp.asarray(roots, jnp.float32))
    heads = (chosen, pairs, moments, jr.split(token_key, len(pairs)))
    statistics = _heads(heads, table, length=length, draws=draws, tokens=tokens)
    shaped = {name: np.asarray(array, np.float64).reshape(LAYERS, HEADS) for name, array in statistics.items()}
    return Control(length=length, prompts=draws, **shaped)


def _gaussian_tokens(key: PRNGKeyArray, length: int, pairs, moments) -> Float[Array, "l p"]:
    mean, _, root = moments
    return mean + jr.normal(key, (length, len(mean)), mean.dtype) @ root.T


def _tokens_of_text(key: PRNGKeyArray, length: int, pairs, moments) -> Float[Array, "l p"]:
    return pairs[jr.randint(key, (length,), 0, len(pairs))]


def _first_averaged(
    scores: Float[Array, "q l"], mean: Float[Array, " q"], tau: Float[Array, " q"]
) -> Float[Array, " q"]:
    """Return Σp² of Gaussian scores N(mean, τ²), with the first token averaged exactly given the others.

    Rare prompts carry the mean of a plain sum, so that its standard error over a few dozen prompts is too small.
    """
    tau = jnp.minimum(tau, LARGEST_TAU)  # limits single queries only; the mean of each head is far below
    return scores.shape[1] * square_given_others(tau, jax.nn.logsumexp(scores[:, 1:], axis=1) - mean)


@partial(jax.jit, static_argnames=("length", "draws", "tokens"))
def _heads(heads: tuple, table, *, length: int, draws: int, tokens) -> dict[str, Array]:
    """Return the statistics of all heads, from their queries, keys and values on the text, moments and random keys."""

    def head(inputs):
        queries, pairs, moments, key = inputs
        mean, cov, _ = moments
        drift = queries @ cov[:HEAD_WIDTH, HEAD_WIDTH:]
        tau = jnp.sqrt(jnp.einsum("qi,ij,qj->q", queries, cov[:HEAD_WIDTH, :HEAD_WIDTH], queries))
        squares = jnp.sum(drift**2, axis=1)
        exact = interpolate(tau, table)

        def prompt(key):
            drawn = tokens(key, length, pairs, moments)
            scores, values = queries @ drawn[:, :HEAD_WIDTH].T, drawn[:, HEAD_WIDTH:]
            along = jnp.sum((jax.nn.softmax(scores, axis=1) @ values - mean[HEAD_WIDTH:]) * drift)
            comparison = compare(scores, values)
            participations = comparison.participation
            if tokens is _gaussian_tokens:
                participations = _first_averaged(scores, queries @ mean[:HEAD_WIDTH], tau)
            return comparison, participations.mean(), along / jnp.sum(squares)

        comparison, participations, slopes = jax.lax.map(prompt, jr.split(key, draws))
        return {
            "ratio": tau.mean() / np.float32(np.sqrt(2 * np.log(length))),
            "participation": participations.mean(),
            "participation_se": participations.std(ddof=1) / np.sqrt(draws).astype(np.float32),
            "expected_participation": exact.mean(),
            "slope": slopes.mean(),
            "slope_se": slopes.std(ddof=1) / np.sqrt(draws).astype(np.float32),
            "expected_slope": jnp.sum((1 - exact) * squares) / jnp.sum(squares),
            "share": explained_share(comparison),
        }

    return jax.lax.map(head, heads)
