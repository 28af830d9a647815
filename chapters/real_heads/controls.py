"""Simulated prompts with the queries of the heads: Gaussian tokens, and independent tokens of the text.

Queries come from the text and are not part of the simulated prompts, because a query that is a token of its own prompt
is not independent of it. The scores of each query have their own spread τ, so the expectation for a head is a mean over
its queries.
"""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.interpolate import RectBivariateSpline

from chapters.real_heads import tracked_tables
from chapters.real_heads.encoder import HEAD_WIDTH, HEADS, LAYERS
from chapters.real_heads.head_comparison import Comparison, compare, explained_share
from chapters.real_heads.head_measurements import GRID, head_inputs, tabulate_participation
from chapters.real_heads.network import Network
from chapters.real_heads.regimes import freezing
from chapters.real_heads.statistics import Control
from lib.finite_prompt import LARGEST_TAU
from lib.partition import square_given_others
from lib.statistics import standard_error

# Number of queries per head, the same in every simulated prompt.
QUERIES = 64
# Added to the diagonal of a covariance, relative to its trace: its rounding in float32, so that it stays positive.
JITTER = 1e-7
# Nodes of a table of E p² given the other tokens: τ, and the logarithm of the others' exponentials over 1 + τ.
TAUS, PLACES = LARGEST_TAU * np.linspace(0.0, 1.0, 121) ** 2, np.linspace(-6.0, 9.0, 121)


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


class TextTokens(NamedTuple):
    """Queries and pairs of key and value of each head on all prompts of the text, with moments of the pairs."""

    queries: Float[np.ndarray, "heads n p"]
    pairs: Float[np.ndarray, "heads n p_k+p_v"]
    mean: Float[np.ndarray, "heads p_k+p_v"]
    covariance: Float[np.ndarray, "heads p_k+p_v p_k+p_v"]


# Several simulations follow each other at the longest length.
@lru_cache(maxsize=1)
def _text_tokens(network: Network, length: int, prompts: int) -> TextTokens:
    inputs = head_inputs(network, length, prompts)
    # from (prompts, layers, heads, L, 32) to (heads of all layers, tokens of all prompts, 32)
    queries, keys, values = (
        np.moveaxis(np.asarray(part), 0, 2).reshape(LAYERS * HEADS, -1, HEAD_WIDTH) for part in inputs
    )
    pairs = np.concatenate([keys, values], axis=2)
    covariance = np.asarray([np.cov(of_head.T, bias=True, dtype=np.float64) for of_head in pairs])
    return TextTokens(queries, pairs, pairs.mean(axis=1), covariance)


def _simulate(
    network: Network, length: int, prompts: int, draws: int, tokens: Callable, *, key: PRNGKeyArray
) -> Control:
    """Return the statistics on `draws` prompts of `tokens(key, (draws, length), pairs, moments)` per head."""
    query_key, token_key = jr.split(key)
    text = _text_tokens(network, length, prompts)
    chosen = text.queries[:, np.asarray(jr.choice(query_key, text.queries.shape[1], (QUERIES,), replace=False))]
    variances = np.trace(text.covariance, axis1=1, axis2=2)[:, None, None]
    roots = np.linalg.cholesky(text.covariance + JITTER * variances * np.eye(2 * HEAD_WIDTH))
    moments = (text.mean, text.covariance.astype(np.float32), roots.astype(np.float32))
    heads = (chosen, text.pairs, moments, jr.split(token_key, len(chosen)))
    statistics = _statistics(heads, length=length, draws=draws, tokens=tokens)
    return Control(length, prompts=draws, **{name: array.reshape(LAYERS, HEADS) for name, array in statistics.items()})


def _statistics(heads: tuple, *, length: int, draws: int, tokens: Callable) -> dict[str, np.ndarray]:
    """Return the statistics of all heads, from their queries, keys and values on the text, moments and random keys."""
    queries, pairs, moments, keys = heads
    table = tabulate_participation(length)
    of_heads = []
    for head, key in enumerate(keys):
        of_head = [part[head] for part in moments]
        drawn = tokens(key, (draws, length), pairs[head], of_head)
        of_heads.append(_of_head(queries[head], drawn, of_head, table))
    statistics = {name: np.array([each[name] for each in of_heads], float) for name in of_heads[0]}
    tau, log_others, participations = (statistics.pop(name) for name in ("tau", "log_others", "participations"))
    if tokens is _gaussian_tokens:
        participations = _first_averaged(length, tau[:, None], log_others)
    of_prompts = participations.mean(axis=2)
    return statistics | {
        "ratio": tau.mean(axis=1) / freezing(length),
        "participation": of_prompts.mean(axis=1),
        "participation_se": standard_error(of_prompts, axis=1),
    }


def _gaussian_tokens(key: PRNGKeyArray, shape: tuple[int, int], pairs, moments) -> Float[np.ndarray, "draws l p"]:
    mean, _, root = moments
    return mean + np.asarray(_normals(jr.split(key, shape[0]), (shape[1], len(mean)), mean.dtype)) @ root.T


def _tokens_of_text(key: PRNGKeyArray, shape: tuple[int, int], pairs, moments) -> Float[np.ndarray, "draws l p"]:
    return pairs[np.asarray(_places(jr.split(key, shape[0]), shape[1], len(pairs)))]


@partial(jax.jit, static_argnums=(1, 2))
def _normals(keys: PRNGKeyArray, shape: tuple[int, int], dtype: np.dtype) -> Float[Array, "keys l p"]:
    """Return standard normals, one array per random key."""
    return jax.lax.map(lambda key: jr.normal(key, shape, dtype), keys)


@partial(jax.jit, static_argnums=(1, 2))
def _places(keys: PRNGKeyArray, length: int, count: int) -> Int[Array, "keys l"]:
    """Return whole numbers below `count`, one row per random key."""
    return jax.vmap(lambda key: jr.randint(key, (length,), 0, count))(keys)


def _first_averaged(
    length: int, tau: Float[np.ndarray, "*#n"], log_others: Float[np.ndarray, "*#n"]
) -> Float[np.ndarray, "*n"]:
    """Return Σp² of scores N(0, τ²), with one token averaged exactly given the sum of the others' exponentials.

    Rare prompts carry the mean of a plain sum, so that its standard error over a few dozen prompts is too small.
    """
    tau = np.minimum(tau, LARGEST_TAU)  # limits single queries only; the mean of each head is far below
    return length * np.exp(_log_square_given_others()(tau, log_others / (1 + tau), grid=False))


@cache
def _log_square_given_others() -> RectBivariateSpline:
    """Return the logarithm of `square_given_others` as a function of `TAUS` and `PLACES`."""
    log_others = np.multiply.outer(1 + TAUS, PLACES)
    squares = jax.lax.map(lambda row: square_given_others(*row), (TAUS[:, None], log_others))
    return RectBivariateSpline(TAUS, PLACES, np.log(squares), kx=5, ky=5)


def _of_head(
    queries: Float[np.ndarray, "q p"], drawn: Float[np.ndarray, "draws l p_k+p_v"], moments, table
) -> dict[str, Float[np.ndarray, "..."]]:
    """Return the statistics of one head: means over draws, and three values per query.

    The values are `tau`, the standard deviation of the scores, and, for every draw, `participations`, Σp², and
    `log_others`, the logarithm of the sum of exp(s - s̄) over all tokens except the first, where s̄ is the mean score.
    """
    mean, cov, _ = moments
    drift, mean_score = queries @ cov[:HEAD_WIDTH, HEAD_WIDTH:], queries @ mean[:HEAD_WIDTH]
    tau = np.sqrt(np.sum(queries @ cov[:HEAD_WIDTH, :HEAD_WIDTH] * queries, axis=1))
    squares = np.sum(drift**2, axis=1)
    exact = np.interp(tau, GRID, table)

    def of_prompt(tokens):
        scores, values = queries @ tokens[:, :HEAD_WIDTH].T, tokens[:, HEAD_WIDTH:]
        largest = scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores - largest)
        outputs = exponentials @ values / exponentials.sum(axis=1, keepdims=True)
        log_others = largest[:, 0] + np.log(exponentials[:, 1:].sum(axis=1)) - mean_score
        return compare(scores, values), log_others, np.sum((outputs - mean[HEAD_WIDTH:]) * drift)

    comparisons, log_others, along = zip(*map(of_prompt, drawn), strict=True)
    comparison, slopes = Comparison(*map(np.array, zip(*comparisons, strict=True))), np.array(along) / squares.sum()
    return {
        "tau": tau,
        "log_others": np.array(log_others),
        "participations": comparison.participation,
        "expected_participation": exact.mean(),
        "slope": slopes.mean(),
        "slope_se": standard_error(slopes),
        "expected_slope": np.sum((1 - exact) * squares) / squares.sum(),
        "share": explained_share(comparison),
    }
