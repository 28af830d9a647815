"""Make the table of correlations of tokens along a real text, in the network of the chapter `real_heads`.

    python -m chapters.sinks_and_dependent_tokens.data.make

Half a minute on one core; it needs the weights of the network (requirements-weights.lock).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from chapters.real_heads.data.make import opened
from chapters.real_heads.encoder import LAYERS, HeadInputs, attend, encode
from chapters.real_heads.network import Network
from chapters.real_heads.parameters import LONGEST
from companion import Column, Table
from companion.authoring.datasets import Result, make
from lib.statistics import standard_error

# Lags of half a prompt have as many pairs of tokens in a prompt as there are tokens in the other half.
LAGS = LONGEST // 2
SEED = 0
COLUMNS = {
    "tokens": Column(
        "`words`, embeddings without position and layer; `keys 0` to `keys 5`, keys of all heads of a layer; "
        "`shuffled`, the words in random order",
        "name",
    ),
    "lag": Column("Distance k between tokens", "tokens"),
    "correlation": Column("$r_k$: mean inner product of tokens k apart, over the mean square of a token"),
    "std_error": Column("Standard error of `correlation` over prompts"),
}


def text() -> Result:
    """Return correlations of words and keys, by lag, over stretches of the text as long as the longest prompt."""
    network = opened()
    prompts = len(network.text) // LONGEST
    tokens = network.text[: prompts * LONGEST].reshape(prompts, LONGEST)
    words = np.asarray(network.weights.embeddings["word_embeddings.weight"])[tokens]
    order = np.random.default_rng(SEED).permutation(tokens.size)
    shuffled = words.reshape(-1, words.shape[-1])[order].reshape(words.shape)
    groups = {"words": words, "shuffled": shuffled} | keys_of(network, tokens)
    frame = pd.concat([correlations(name, vectors) for name, vectors in groups.items()], ignore_index=True)
    return Result(Table(frame, COLUMNS), {"length": LONGEST, "prompts": prompts, "seed": SEED}, digits=5)


def keys_of(network: Network, tokens: np.ndarray) -> dict[str, np.ndarray]:
    """Return the keys of each layer, those of its heads joined; without special tokens."""

    def collect(inputs: HeadInputs, argument):
        joined = inputs.keys.swapaxes(0, 1).reshape(inputs.keys.shape[1], -1)
        return attend(inputs), joined

    keys = np.asarray(jax.lax.map(lambda prompt: encode(network.weights, prompt, collect)[1], jnp.asarray(tokens)))
    return {f"keys {layer}": keys[:, layer] for layer in range(LAYERS)}


def correlations(name: str, vectors: np.ndarray) -> pd.DataFrame:
    """Return `r_k` of vectors of shape (prompts, L, d), each place less its mean over prompts."""
    centred = np.asarray(vectors, float) - vectors.mean(axis=0)
    padded = 2 * centred.shape[1]
    power = np.sum(np.abs(np.fft.rfft(centred, padded, axis=1)) ** 2, axis=2)
    pairs = centred.shape[1] - np.arange(LAGS)
    products = np.fft.irfft(power, padded, axis=1)[:, :LAGS] / pairs
    ratio = products / products[:, 0].mean()
    lags = np.arange(1, LAGS)
    columns = {"correlation": ratio.mean(axis=0)[1:], "std_error": standard_error(ratio)[1:]}
    return pd.DataFrame({"tokens": name, "lag": lags, **columns})


if __name__ == "__main__":
    make(__file__, __doc__, {"text": text})
