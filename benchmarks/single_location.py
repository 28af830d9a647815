"""The Bayes risk of single-location regression by quadrature, beside prompts simulated in NumPy."""

from collections.abc import Iterator
from functools import partial

import jax
import numpy as np
from scipy.special import softmax

from benchmarks.contests import Contest
from lib.single_location import Spiked, bayes_risk

THREADS = (2,)
SEED = 0
ACCURACY = 0.01  # standard error of a Monte-Carlo estimate, relative to the risk
SETTINGS = ((2, 5.0), (100, 10.0), (10_000, 20.0))
BLOCK = 2**20  # scores that are drawn at once


def contests() -> Iterator[Contest]:
    """One pair (L, ν) at a time; Monte Carlo is extrapolated from one block to the accuracy by the square law."""
    for length, snr in SETTINGS:
        risks = simulated(length, snr)
        blocks = (risks.std() / np.sqrt(len(risks)) / risks.mean() / ACCURACY) ** 2
        runs = {"bayes_risk": partial(exactly, length, snr), "NumPy, to 1 %": partial(simulated, length, snr)}
        yield Contest("Bayes risk of a needle", f"L = {length:,}, ν = {snr:g}", runs, {"NumPy, to 1 %": 1 / blocks})


def exactly(length: int, snr: float) -> None:
    """Twelve digits."""
    with jax.enable_x64(True):
        bayes_risk(Spiked(length, snr)).block_until_ready()


def simulated(length: int, snr: float) -> np.ndarray:
    """The risk of as many prompts as fit a block."""
    rng = np.random.default_rng(SEED)
    scores = rng.normal(size=(BLOCK // length, length))
    scores[:, 0] += np.sqrt(snr)
    return 1 - softmax(np.sqrt(snr) * scores, axis=1)[:, 0]
