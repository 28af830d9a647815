"""Prompts whose law is known, asked the heads' own queries: Gaussian tokens, and tokens of the text drawn one by one.

Queries come from the text and stand outside of the prompts: a token that asks about itself would not be independent of
its prompt. Every query has scores of its own spread τ, so what is expected of a head is a mean over its queries.
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
from chapters.real_heads.head_measurements import at, seen_by_heads, tabulated
from chapters.real_heads.network import Network
from chapters.real_heads.statistics import Control
from lib.heads import compare, explained_share
from lib.partition import LARGEST_SQUARE_TAU, square_given_others

# Queries a head is asked in every drawn prompt.
QUERIES = 64
# Rounding of a covariance in float32, relative to its trace: what keeps its Cholesky factor real.
JITTER = 1e-7


def gaussian(
    network: Network | None, lengths: list[int], prompts: int, drawn: int, *, key: PRNGKeyArray, name: str = "gaussian"
) -> Mapping[int, Control]:
    """Gaussian keys and values with the mean and covariance that each head's have on the text, at every length.

    `drawn` prompts a head and length; `name` is that of the table that stands for them without the network.
    """
    if network is None:
        return {length: tracked_tables.control(name, length) for length in lengths}
    return {
        length: _draw(network, length, prompts, drawn, _normal, key=jr.fold_in(key, length))
        for length in sorted(lengths)
    }


def independent(network: Network | None, length: int, prompts: int, drawn: int, *, key: PRNGKeyArray) -> Control:
    """Keys and values that each head has on the text, drawn independently of one another from all prompts."""
    if network is None:
        return tracked_tables.control("independent", length)
    return _draw(network, length, prompts, drawn, _one_of, key=key)


def _draw(network: Network, length: int, prompts: int, draws: int, law, *, key: PRNGKeyArray) -> Control:
    query_key, token_key = jr.split(key)
    seen = seen_by_heads(network, length, prompts)
    # (prompts, layers, heads, L, 32) as one row a head and token
    queries, keys, values = (jnp.moveaxis(part, 0, 2).reshape(LAYERS * HEADS, -1, HEAD_WIDTH) for part in seen)
    chosen = queries[:, jr.choice(query_key, queries.shape[1], (QUERIES,), replace=False)]
    pairs = jnp.concatenate([keys, values], axis=2)
    means = pairs.mean(axis=1)
    covariances = np.asarray([np.cov(np.asarray(these, np.float64).T, bias=True) for these in pairs])
    roots = np.linalg.cholesky(
        covariances + JITTER * np.trace(covariances, axis1=1, axis2=2)[:, None, None] * np.eye(2 * HEAD_WIDTH)
    )
    table = jnp.asarray(tabulated(length), jnp.float32)
    moments = (means, jnp.asarray(covariances, jnp.float32), jnp.asarray(roots, jnp.float32))
    given = (chosen, pairs, moments, jr.split(token_key, len(pairs)))
    found = _heads(given, table, length=length, draws=draws, law=law)
    shaped = {name: np.asarray(array, np.float64).reshape(LAYERS, HEADS) for name, array in found.items()}
    return Control(length=length, prompts=draws, **shaped)


def _normal(key: PRNGKeyArray, length: int, pairs, moments) -> Float[Array, "l p"]:
    mean, _, root = moments
    return mean + jr.normal(key, (length, len(mean)), mean.dtype) @ root.T


def _one_of(key: PRNGKeyArray, length: int, pairs, moments) -> Float[Array, "l p"]:
    return pairs[jr.randint(key, (length,), 0, len(pairs))]


def _first_averaged(
    scores: Float[Array, "q l"], mean: Float[Array, " q"], tau: Float[Array, " q"]
) -> Float[Array, " q"]:
    """`Σp²` of Gaussian scores N(mean, τ²), the first token averaged exactly given the others.

    A plain sum is carried by few prompts, and its standard error over some dozens of them is too small.
    """
    tau = jnp.minimum(tau, LARGEST_SQUARE_TAU)  # of single queries: no head is near it on average
    return scores.shape[1] * square_given_others(tau, jax.nn.logsumexp(scores[:, 1:], axis=1) - mean)


@partial(jax.jit, static_argnames=("length", "draws", "law"))
def _heads(heads: tuple, table, *, length: int, draws: int, law) -> dict[str, Array]:
    """One head after the other: of each its queries, its keys and values on the text, their moments, and a key."""

    def head(these):
        queries, pairs, moments, key = these
        mean, cov, _ = moments
        drift = queries @ cov[:HEAD_WIDTH, HEAD_WIDTH:]
        tau = jnp.sqrt(jnp.einsum("qi,ij,qj->q", queries, cov[:HEAD_WIDTH, :HEAD_WIDTH], queries))
        squares = jnp.sum(drift**2, axis=1)
        exact = at(tau, table)

        def prompt(key):
            drawn = law(key, length, pairs, moments)
            scores, values = queries @ drawn[:, :HEAD_WIDTH].T, drawn[:, HEAD_WIDTH:]
            along = jnp.sum((jax.nn.softmax(scores, axis=1) @ values - mean[HEAD_WIDTH:]) * drift)
            found = compare(scores, values)
            weights = found.participation
            if law is _normal:
                weights = _first_averaged(scores, queries @ mean[:HEAD_WIDTH], tau)
            return found, weights.mean(), along / jnp.sum(squares)

        found, weights, slopes = jax.lax.map(prompt, jr.split(key, draws))
        return {
            "ratio": tau.mean() / np.float32(np.sqrt(2 * np.log(length))),
            "participation": weights.mean(),
            "participation_se": weights.std(ddof=1) / np.sqrt(draws).astype(np.float32),
            "expected_participation": exact.mean(),
            "slope": slopes.mean(),
            "slope_se": slopes.std(ddof=1) / np.sqrt(draws).astype(np.float32),
            "expected_slope": jnp.sum((1 - exact) * squares) / jnp.sum(squares),
            "share": explained_share(found),
        }

    return jax.lax.map(head, heads)
