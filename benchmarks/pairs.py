"""The two functions of a pair of softmax heads by quadrature, beside prompts simulated in NumPy."""

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np
from scipy.special import softmax

from benchmarks.contests import Contest
from lib.pairs import _pair_statistics

THREADS = (2,)
SEED = 0
ACCURACY = 0.01  # standard error of a Monte-Carlo estimate of C(a, b), relative to it
SETTINGS = ((0.3, -0.3, 40), (2.0, 1.0, 1_000), (5.0, -5.0, 40), (5.0, 5.0, 10_000))
BLOCK = 2**20  # scores that are drawn at once


def contests() -> Iterator[Contest]:
    """One pair of tilts at one length; Monte Carlo is extrapolated from one block to the accuracy by the square law."""
    for a, b, length in SETTINGS:
        shared = simulated(a, b, length)
        blocks = (shared.std() / np.sqrt(len(shared)) / shared.mean() / ACCURACY) ** 2
        runs = {
            "pair_statistics": partial(exactly, a, b, length),
            "NumPy, to 1 %": partial(simulated, a, b, length),
        }
        setting = f"a = {a:g}, b = {b:g}, L = {length:,}"
        yield Contest("A pair of heads", setting, runs, {"NumPy, to 1 %": 1 / blocks})


def exactly(a: float, b: float, length: int) -> None:
    """Eleven digits of both functions."""
    with jax.enable_x64(True):
        jax.block_until_ready(_pair_statistics(a, b, np.log(length)))


def simulated(a: float, b: float, length: int) -> np.ndarray:
    """The sum of the products of both heads' weights, for as many prompts as fit a block."""
    scores = np.random.default_rng(SEED).normal(size=(BLOCK // length, length))
    return np.sum(softmax(a * scores, axis=1) * softmax(b * scores, axis=1), axis=1)
