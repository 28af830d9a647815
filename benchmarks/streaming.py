"""Attention over fresh tokens, a block at a time, beside what it cannot do without, and beside what holds all tokens.

The floor draws the same tokens in the same blocks, takes one exponential a token, and no more.
"""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

from benchmarks.contests import Contest
from lib.attention import Attention, attend, stream_attend
from lib.measures import Gaussian, empirical

THREADS = (2,)
DIMENSION, BLOCK, SEED = 16, 65_536, 0
LENGTHS = (10**3, 10**4, 10**5, 10**6, 10**7)
HEAVY = (10**5, 10**6, 10**7)  # where memory is compared


def contests() -> Iterator[Contest]:
    """Time at every length, memory at the large ones; all in single precision."""
    for length in LENGTHS:
        yield Contest("Streaming attention, time", f"L = {length:,}, d = {DIMENSION}", contenders(length))
    for length in HEAVY:
        held = {name: run for name, run in contenders(length).items() if name != FLOOR}
        yield Contest("Streaming attention, memory", f"L = {length:,}, d = {DIMENSION}", held, of_memory=True)


OURS, FLOOR, NAIVE, TORCH = "stream_attend", "its tokens and exponentials", "softmax in JAX", "PyTorch's attention"


def contenders(length: int):
    """By name, ours first."""
    with jax.enable_x64(False):
        rng = np.random.default_rng(SEED)
        root = rng.normal(size=(DIMENSION, DIMENSION)) / DIMENSION**0.5
        law = Gaussian(rng.normal(size=DIMENSION), root @ root.T)
        head = Attention(rng.normal(size=(DIMENSION, DIMENSION)) / DIMENSION, np.eye(DIMENSION))
        query = jnp.asarray(rng.normal(size=DIMENSION), jnp.float32)
    streamed = jax.jit(lambda query, key: stream_attend(head, law, query, length, key=key, block=min(BLOCK, length)))
    naive = jax.jit(lambda query, key: attend(head, empirical(law, length, key=key), query))
    runs = {
        OURS: partial(_single, streamed, query),
        FLOOR: partial(_single, jax.jit(partial(_floor, law, length)), query),
        NAIVE: partial(_single, naive, query),
    }
    return {**runs, TORCH: _torch(root, np.asarray(law.mean), length)} if find_spec("torch") else runs


def _single(program, query) -> None:
    with jax.enable_x64(False):
        program(query, jr.key(SEED)).block_until_ready()


def _floor(law: Gaussian, length: int, query, key):
    size = min(BLOCK, length)

    def block(j, total):
        tokens = law.sample(size, key=jr.fold_in(key, j))
        return total + jnp.sum(jnp.exp(tokens[:, 0])) + jnp.sum(tokens)

    return jax.lax.fori_loop(0, -(-length // size), block, jnp.sum(query))


def _torch(root: np.ndarray, mean: np.ndarray, length: int):
    import torch  # pyright: ignore[reportMissingImports]

    matrix, centre = (torch.tensor(array, dtype=torch.float32) for array in (root, mean))
    query = torch.randn(1, 1, DIMENSION) / DIMENSION

    def run() -> None:
        with torch.inference_mode():
            tokens = (centre + torch.randn(length, DIMENSION) @ matrix.T)[None]
            torch.nn.functional.scaled_dot_product_attention(query, tokens, tokens, scale=1.0)

    return run
