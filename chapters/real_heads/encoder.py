"""The forward pass of MiniLM-L6, an encoder of BERT's kind: six layers of twelve heads, then a mean over tokens."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

LAYERS, HEADS, WIDTH, HEAD_WIDTH = 6, 12, 384, 32
# What layer norms add to a variance, as the model's configuration has it.
EPSILON = 1e-12


class Weights(NamedTuple):
    """Arrays by the names of the model's file: those of the embedding, and those of the layers, stacked."""

    embeddings: dict[str, Float[Array, "..."]]
    layers: dict[str, Float[Array, "layers ..."]]


class HeadInputs(NamedTuple):
    """What the heads of a layer make of a prompt. Scores are ⟨query, key⟩: `queries` hold the network's own 1/√32."""

    queries: Float[Array, "heads l p"]
    keys: Float[Array, "heads l p"]
    values: Float[Array, "heads l p"]


# The outputs of a layer's heads, and what is to be kept of them, from their inputs and what that layer was given.
See = Callable[[HeadInputs, Any], tuple[Float[Array, "heads l p"], Any]]


def attend(inputs: HeadInputs) -> Float[Array, "heads l p"]:
    """Softmax attention of every head; every token asks about all of them, there is no mask."""
    scores = jnp.einsum("hqp,hlp->hql", inputs.queries, inputs.keys)
    return jax.nn.softmax(scores, axis=-1) @ inputs.values


def only_attend(inputs: HeadInputs, given: Any) -> tuple[Float[Array, "heads l p"], None]:
    """The network as it is, of which nothing is kept."""
    return attend(inputs), None


def encode(
    weights: Weights, tokens: Int[Array, " l"], see: See = only_attend, given: Any = None
) -> tuple[Float[Array, "l d"], Any]:
    """The last layer's tokens, and what `see` kept of every layer, stacked; `given` has a leading axis of layers."""

    def step(x, layer):
        weights, given = layer
        outputs, kept = see(_inputs(weights, x), given)
        return _finish(weights, x, outputs), kept

    return jax.lax.scan(step, _embed(weights.embeddings, tokens), (weights.layers, given))


def embedding(tokens: Float[Array, "l d"]) -> Float[Array, " d"]:
    """A text's embedding: the mean over its tokens, of length 1."""
    mean = tokens.mean(axis=0)
    return mean / jnp.linalg.norm(mean)


def _embed(weights: dict, tokens: Int[Array, " l"]) -> Float[Array, "l d"]:
    """Word, place, and the one kind of segment, added and normalised: the prompt as the first layer sees it."""
    words, places = weights["word_embeddings.weight"][tokens], weights["position_embeddings.weight"][: len(tokens)]
    return _norm(weights, "LayerNorm", words + places + weights["token_type_embeddings.weight"][0])


def _inputs(weights: dict, x: Float[Array, "l d"]) -> HeadInputs:
    """Queries, keys and values: a block of coordinates a head."""

    def split(part):
        return _linear(weights, f"attention.self.{part}", x).reshape(len(x), HEADS, HEAD_WIDTH).swapaxes(0, 1)

    return HeadInputs(split("query") * HEAD_WIDTH**-0.5, split("key"), split("value"))


def _finish(weights: dict, x: Float[Array, "l d"], outputs: Float[Array, "heads l p"]) -> Float[Array, "l d"]:
    """The rest of a layer, given its heads' outputs: what the next one sees."""
    joined = _linear(weights, "attention.output.dense", outputs.swapaxes(0, 1).reshape(len(x), WIDTH))
    x = _norm(weights, "attention.output.LayerNorm", x + joined)
    inner = jax.nn.gelu(_linear(weights, "intermediate.dense", x), approximate=False)
    return _norm(weights, "output.LayerNorm", x + _linear(weights, "output.dense", inner))


def _linear(weights: dict, name: str, x: Float[Array, "l i"]) -> Float[Array, "l o"]:
    """`x Wᵀ + b`: matrices are stored as PyTorch stores them."""
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _norm(weights: dict, name: str, x: Float[Array, "l d"]) -> Float[Array, "l d"]:
    """Every token centred and scaled to variance 1, then every coordinate scaled and shifted."""
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=1, keepdims=True) + EPSILON)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
