"""The forward pass of MiniLM-L6, a BERT encoder: six layers of twelve heads, then a mean over tokens."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

LAYERS, HEADS, WIDTH, HEAD_WIDTH = 6, 12, 384, 32
# Added to the variance in layer norms, by the configuration of the model.
EPSILON = 1e-12


class Weights(NamedTuple):
    """Arrays of the embedding and, stacked, of the layers, by their names in the file of the model."""

    embeddings: dict[str, Float[Array, "..."]]
    layers: dict[str, Float[Array, "layers ..."]]


class HeadInputs(NamedTuple):
    """Queries, keys and values of the heads of a layer.

    Scores are ⟨query, key⟩; `queries` contain the factor 1/√32 of the network.
    """

    queries: Float[Array, "heads l p"]
    keys: Float[Array, "heads l p"]
    values: Float[Array, "heads l p"]


# Returns the outputs of a layer's heads, and values to collect, from their inputs and an argument of that layer.
HeadFunction = Callable[[HeadInputs, Any], tuple[Float[Array, "heads l p"], Any]]


def attend(inputs: HeadInputs) -> Float[Array, "heads l p"]:
    """Return the outputs of softmax attention in every head, without a mask: every token attends to all tokens."""
    scores = jnp.einsum("hqp,hlp->hql", inputs.queries, inputs.keys)
    return jax.nn.softmax(scores, axis=-1) @ inputs.values


def encode(
    weights: Weights, tokens: Int[Array, " l"], heads: HeadFunction, arguments: Any = None
) -> tuple[Float[Array, "l d"], Any]:
    """Return the tokens after the last layer, and the values that `heads` collects in every layer, stacked.

    `arguments` has a leading axis of layers.
    """

    def step(x, layer):
        weights, argument = layer
        outputs, collected = heads(_inputs(weights, x), argument)
        return _finish(weights, x, outputs), collected

    return jax.lax.scan(step, _embed(weights.embeddings, tokens), (weights.layers, arguments))


def embedding(tokens: Float[Array, "l d"]) -> Float[Array, " d"]:
    """Return the embedding of a text: the mean over its tokens, normalised to length 1."""
    mean = tokens.mean(axis=0)
    return mean / jnp.linalg.norm(mean)


def _embed(weights: dict, tokens: Int[Array, " l"]) -> Float[Array, "l d"]:
    """Return the input of the first layer: normalised sums of word, position and segment embeddings."""
    words, positions = weights["word_embeddings.weight"][tokens], weights["position_embeddings.weight"][: len(tokens)]
    return _norm(weights, "LayerNorm", words + positions + weights["token_type_embeddings.weight"][0])


def _inputs(weights: dict, x: Float[Array, "l d"]) -> HeadInputs:
    """Return queries, keys and values: one block of coordinates per head."""

    def split(part):
        return _linear(weights, f"attention.self.{part}", x).reshape(len(x), HEADS, HEAD_WIDTH).swapaxes(0, 1)

    return HeadInputs(split("query") * HEAD_WIDTH**-0.5, split("key"), split("value"))


def _finish(weights: dict, x: Float[Array, "l d"], outputs: Float[Array, "heads l p"]) -> Float[Array, "l d"]:
    """Return the output of a layer, given the outputs of its heads."""
    joined = _linear(weights, "attention.output.dense", outputs.swapaxes(0, 1).reshape(len(x), WIDTH))
    x = _norm(weights, "attention.output.LayerNorm", x + joined)
    inner = jax.nn.gelu(_linear(weights, "intermediate.dense", x), approximate=False)
    return _norm(weights, "output.LayerNorm", x + _linear(weights, "output.dense", inner))


def _linear(weights: dict, name: str, x: Float[Array, "l i"]) -> Float[Array, "l o"]:
    """Return `x Wᵀ + b`; matrices are stored as in PyTorch."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(weights: dict, name: str, x: Float[Array, "l d"]) -> Float[Array, "l d"]:
    """Return the layer norm: each token centred and scaled to variance 1, then each coordinate scaled and shifted."""
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=1, keepdims=True) + EPSILON)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
