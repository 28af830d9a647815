"""Heads answered for by something simpler: does the text's embedding notice?

A replaced head gives the Gaussian answer of the prompt in hand (`own`), an affine map of the query fitted on other
stretches of the text (`fitted`), or the mean value whatever it is asked (`mean`).
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from chapters.real_heads.encoder import HEAD_WIDTH, HEADS, LAYERS, HeadInputs, Weights, attend, embedding, encode
from chapters.real_heads.head_measurements import seen_by_heads
from chapters.real_heads.network import Network, installed, tokenizer_of

SENTENCES = Path(__file__).parent / "data" / "sentences.txt"
ANSWERS = ("own", "fitted", "mean")
# Tokens of a stretch of text; how many stretches the affine maps are fitted on, and how many others are embedded.
LENGTH, FITTED_ON, EMBEDDED = 128, 16, 19

Mask = Bool[np.ndarray, "layers heads"]


class AffineMaps(NamedTuple):
    """Of every head `offset + query @ matrix`, fitted on a text: mean value and covariance of keys with values."""

    offset: Float[Array, "layers heads p"]
    matrix: Float[Array, "layers heads p p"]


class Texts(NamedTuple):
    """Stretches of the text that no map was fitted on, all of one length, and sentences in pairs of one meaning."""

    stretches: Int[np.ndarray, "texts l"]
    sentences: list[Int[np.ndarray, " l"]]


def texts(network: Network) -> Texts:
    """What is embedded."""
    tokenizer = tokenizer_of(installed())
    sentences = [tokenizer.encode(line).ids for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    stretches = network.prompts(LENGTH, FITTED_ON + EMBEDDED)[FITTED_ON:]
    return Texts(stretches, [np.asarray(ids, np.int32) for ids in sentences])


def fit(network: Network) -> AffineMaps:
    """The Gaussian answer with the moments of all tokens of the first stretches: of the head's law, not of a prompt."""
    seen = seen_by_heads(network, LENGTH, FITTED_ON)
    keys, values = (jnp.moveaxis(part, 0, 2).reshape(LAYERS, HEADS, -1, HEAD_WIDTH) for part in seen[1:])
    offset = values.mean(axis=2)
    keys, values = keys - keys.mean(axis=2, keepdims=True), values - offset[:, :, None]
    return AffineMaps(offset, jnp.einsum("lhnp,lhno->lhpo", keys, values) / keys.shape[2])


def embed(
    network: Network, maps: AffineMaps, found: Texts, answer: str, replaced: Mask
) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of stretches and of sentences, the `replaced` heads giving that `answer`."""
    run = partial(_embed, network.weights, maps, jnp.asarray(replaced), ANSWERS.index(answer))
    sentences = [np.asarray(run(jnp.asarray(ids)[None]))[0] for ids in found.sentences]
    return np.asarray(run(jnp.asarray(found.stretches))), np.asarray(sentences)


@jax.jit
def _embed(
    weights: Weights, maps: AffineMaps, replaced, answer, tokens: Int[Array, "texts l"]
) -> Float[Array, "texts d"]:
    def see(inputs, given):
        maps, replaced = given
        other = jax.lax.switch(answer, [_own, _fitted, _mean], inputs, maps)
        return jnp.where(replaced[:, None, None], other, attend(inputs)), None

    return jax.lax.map(lambda text: embedding(encode(weights, text, see, (maps, replaced))[0]), tokens)


def _own(inputs: HeadInputs, maps: AffineMaps) -> Float[Array, "heads l p"]:
    mean = inputs.values.mean(axis=1, keepdims=True)
    keys = inputs.keys - inputs.keys.mean(axis=1, keepdims=True)
    covariance = jnp.einsum("hlp,hlo->hpo", keys, inputs.values - mean) / keys.shape[1]
    return mean + inputs.queries @ covariance


def _fitted(inputs: HeadInputs, maps: AffineMaps) -> Float[Array, "heads l p"]:
    return maps.offset[:, None] + inputs.queries @ maps.matrix


def _mean(inputs: HeadInputs, maps: AffineMaps) -> Float[Array, "heads l p"]:
    return jnp.broadcast_to(inputs.values.mean(axis=1, keepdims=True), inputs.values.shape)


def cosines(one: Float[np.ndarray, "n d"], other: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Of the angles between embeddings of the same texts."""
    return np.sum(one * other, axis=1)


def found_partners(embeddings: Float[np.ndarray, "n d"]) -> float:
    """The share of sentences whose nearest other sentence is the one of the same meaning, which stands beside it."""
    similar = embeddings @ embeddings.T
    np.fill_diagonal(similar, -np.inf)
    return float(np.mean(np.argmax(similar, axis=1) == (np.arange(len(embeddings)) ^ 1)))


def first_heads(order: Sequence[int] | np.ndarray, count: int) -> Mask:
    """The first so many heads of an order of all 72, numbered layer after layer."""
    mask = np.zeros(LAYERS * HEADS, bool)
    mask[np.asarray(order, int)[:count]] = True
    return mask.reshape(LAYERS, HEADS)
