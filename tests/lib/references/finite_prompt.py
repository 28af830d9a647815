"""Writes finite_prompt.json: P and Q at random (τ, L), by the quadrature of `sink.py` without a sink.

python tests/lib/references/finite_prompt.py     (half a minute)
"""

import json
import random
from pathlib import Path

import mpmath as mp
from sink import COARSE, DIGITS, FINE, STORED_DIGITS, statistics

PATH = Path(__file__).with_suffix(".json")
SEED = 20
PAIRS = 20


def draw():
    """The pairs: τ uniform in [0.05, 7], L log-uniform in {2, …, 10^12}."""
    generator = random.Random(SEED)
    return [(generator.uniform(0.05, 7), round(2 * 5e11 ** generator.random())) for _ in range(PAIRS)]


def reference(tau, length):
    """One row: the finer of two quadratures, and by how much the coarser disagrees."""
    (_, *coarse), (_, *fine) = (statistics(tau, length, -mp.inf, each) for each in (COARSE, FINE))
    with mp.workdps(DIGITS):
        agreement = max(abs(a / b - 1) for a, b in zip(coarse, fine, strict=True))
        numbers = [mp.nstr(value, STORED_DIGITS) for value in fine]
    row = {"tau": tau, "length": length, "participation": numbers[0], "score_error": numbers[1]}
    row["agreement"] = float(agreement)
    print(row, flush=True)
    return row


def main():
    """Write all pairs."""
    table = {"working_digits": DIGITS, "seed": SEED, "pairs": [reference(*pair) for pair in draw()]}
    PATH.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
