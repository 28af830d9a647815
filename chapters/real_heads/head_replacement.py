"""Embeddings of texts if some heads are replaced by something simpler.

The output of a replaced head is the Gaussian prediction for the prompt (`own`), an affine map of the query fitted on
other stretches of the text (`fitted`), or the mean value for every query (`mean`).
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
from chapters.real_heads.head_measurements import head_inputs
from chapters.real_heads.network import Network, installed, tokenizer_of

SENTENCES = Path(__file__).parent / "data" / "sentences.txt"
REPLACEMENTS = ("own", "fitted", "mean")
# Tokens of a stretch of text; number of stretches for fitting the affine maps; number of other stretches to embed.
LENGTH, FITTED_ON, EMBEDDED = 128, 16, 19

Mask = Bool[np.ndarray, "layers heads"]


class AffineMaps(NamedTuple):
    """Affine maps `offset + query @ matrix` of all heads: mean value, and covariance of keys with values on a text."""

    offset: Float[Array, "layers heads p"]
    matrix: Float[Array, "layers heads p p"]


class Texts(NamedTuple):
    """Stretches of the text, of equal length, that were not used for fitting; and sentences in pairs of one meaning."""

    stretches: Int[np.ndarray, "texts l"]
    sentences: list[Int[np.ndarray, " l"]]


def read_texts(network: Network) -> Texts:
    """Return the texts to embed."""
    tokenizer = tokenizer_of(installed())
    sentences = [tokenizer.encode(line).ids for line in SENTENCES.read_text(encoding="utf-8").splitlines()]
    stretches = network.prompts(LENGTH, FITTED_ON + EMBEDDED)[FITTED_ON:]
    return Texts(stretches, [np.asarray(ids, np.int32) for ids in sentences])


def fit_maps(network: Network) -> AffineMaps:
    """Return the Gaussian predictions with the moments of all tokens of the first stretches, not of one prompt."""
    inputs = head_inputs(network, LENGTH, FITTED_ON)
    keys, values = (jnp.moveaxis(part, 0, 2).reshape(LAYERS, HEADS, -1, HEAD_WIDTH) for part in inputs[1:])
    offset = values.mean(axis=2)
    keys, values = keys - keys.mean(axis=2, keepdims=True), values - offset[:, :, None]
    return AffineMaps(offset, jnp.einsum("lhnp,lhno->lhpo", keys, values) / keys.shape[2])


def embed(
    network: Network, maps: AffineMaps, texts: Texts, replacement: str, replaced: Mask
) -> tuple[np.ndarray, np.ndarray]:
    """Return embeddings of stretches and of sentences if the `replaced` heads have the output `replacement`."""
    run = partial(_embed, network.weights, maps, jnp.asarray(replaced), REPLACEMENTS.index(replacement))
    sentences = [np.asarray(run(jnp.asarray(ids)[None]))[0] for ids in texts.sentences]
    return np.asarray(run(jnp.asarray(texts.stretches))), np.asarray(sentences)


@jax.jit
def _embed(
    weights: Weights, maps: AffineMaps, replaced, replacement, tokens: Int[Array, "texts l"]
) -> Float[Array, "texts d"]:
    def replace_heads(inputs, of_layer):
        maps, replaced = of_layer
        other = jax.lax.switch(replacement, [_own, _fitted, _mean], inputs, maps)
        return jnp.where(replaced[:, None, None], other, attend(inputs)), None

    return jax.lax.map(lambda text: embedding(encode(weights, text, replace_heads, (maps, replaced))[0]), tokens)


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
    """Return the cosines between two embeddings of the same texts."""
    return np.sum(one * other, axis=1)


def partner_fraction(embeddings: Float[np.ndarray, "n d"]) -> float:
    """Return the fraction of sentences whose nearest other sentence is their partner; pairs are consecutive."""
    similar = embeddings @ embeddings.T
    np.fill_diagonal(similar, -np.inf)
    return float(np.mean(np.argmax(similar, axis=1) == (np.arange(len(embeddings)) ^ 1)))


def first_heads(order: Sequence[int] | np.ndarray, count: int) -> Mask:
    """Return a mask of the first `count` heads in an order of all 72, which are numbered layer by layer."""
    mask = np.zeros(LAYERS * HEADS, bool)
    mask[np.asarray(order, int)[:count]] = True
    return mask.reshape(LAYERS, HEADS)
