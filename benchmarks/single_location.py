"""What two integrals save over simulated prompts, measured side by side.

    python benchmarks/single_location.py

The Bayes risk of single-location regression for a thousand pairs (L, ν) at once, and one pair at a time against Monte
Carlo in NumPy at equal accuracy. Under a minute.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script from anywhere

import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import softmax

from lib.single_location import Max, Spiked, bayes_risk

SEED = 0
PAIRS = 1000
ACCURACY = 0.01  # standard error of a Monte-Carlo estimate, relative to the risk
SETTINGS = ((2, 5.0), (100, 10.0), (10_000, 20.0), (10_000, 40.0))
BLOCK = 2**20  # scores that are drawn at once


def many_pairs(console: Console) -> None:
    """Lengths from 2 to 10^8, ν from 0.01 to 60, in one call."""
    rng = np.random.default_rng(SEED)
    lengths, snrs = np.floor(10 ** rng.uniform(np.log10(2), 8, PAIRS)), rng.uniform(0.01, 60, PAIRS)
    table = Table("model", "pairs", "seconds", "compiling", title="Bayes risk by quadrature")
    for model in (Spiked, Max):
        start = time.perf_counter()
        bayes_risk(model(lengths[0], snrs[0])).block_until_ready()
        compiled = time.perf_counter()
        bayes_risk(model(lengths, snrs)).block_until_ready()
        table.add_row(model.__name__, str(PAIRS), f"{time.perf_counter() - compiled:.2f}", f"{compiled - start:.2f}")
    console.print(table)


def simulated(length: int, snr: float) -> tuple[float, float, float]:
    """Risk, its relative standard error, and seconds, from as many prompts as fit a block."""
    rng = np.random.default_rng(SEED)
    start = time.perf_counter()
    scores = rng.normal(size=(BLOCK // length, length))
    scores[:, 0] += np.sqrt(snr)
    risks = 1 - softmax(np.sqrt(snr) * scores, axis=1)[:, 0]
    seconds = time.perf_counter() - start
    return risks.mean(), risks.std() / np.sqrt(len(risks)) / risks.mean(), seconds


def one_pair(console: Console) -> None:
    """Monte Carlo is extrapolated from one block to the wanted accuracy by the square law."""
    table = Table("L", "ν", "quadrature", "Monte Carlo", "exact, s", f"MC to {ACCURACY:.0%}, s", "factor")
    for length, snr in SETTINGS:
        task = Spiked(length, snr)
        exact = float(bayes_risk(task))
        start = time.perf_counter()
        bayes_risk(task).block_until_ready()
        seconds = time.perf_counter() - start
        mean, error, block_seconds = simulated(length, snr)
        needed = block_seconds * (error / ACCURACY) ** 2
        row = f"{exact:.6g}", f"{mean:.4g} ± {error:.1%}", f"{seconds:.4f}", f"{needed:.3g}", f"{needed / seconds:.2g}"
        table.add_row(str(length), f"{snr:g}", *row)
    console.print(table)


def main() -> None:
    """Both tables."""
    console = Console()
    with jax.enable_x64(True):
        many_pairs(console)
        one_pair(console)


if __name__ == "__main__":
    main()
