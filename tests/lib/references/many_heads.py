"""Writes many_heads.json: C(a, b) and G̃(a, b) at random pairs of tilts and lengths, with mpmath.

With u = e^s, v = e^t, A = e^{ag}, B = e^{bg}, g ~ N(0, 1), φ = E e^{-uA - vB}, as plain trapezoids,

    C = L ∬ E[uA vB e^{-uA-vB}] φ^{L-1} ds dt
    G̃ = L ∬ E[(g-a)(g-b) uA vB e^{-uA-vB}] φ^{L-1} ds dt
        + L(L-1) ∬ E[(g-a) uA e^{-uA-vB}] E[(g-b) vB e^{-uA-vB}] φ^{L-2} ds dt

Up to `PLAIN` the last two expectations are computed as they stand, which checks Stein's identity, by which the library
computes them. For longer prompts they cancel to 1/L of their terms, and the identity gives them here, too:
E[(g-a) uA e^{-uA-vB}] = -E[(a (uA)² + b uA vB) e^{-uA-vB}]. The factors are computed by mpmath at 40 digits. Their
products are sums of integers of `BITS` binary digits, one scale per row, so that no sum rounds before the last step.

    python tests/lib/references/many_heads.py     (five minutes)
"""

import json
import math
import random
from pathlib import Path

import mpmath as mp
import numpy as np

PATH = Path(__file__).with_suffix(".json")
DIGITS = 40
BITS = 420
STORED_DIGITS = 18
SEED = 8
PAIRS, STORED = 200, 10
PLAIN = 10.0
# (step in s and t, step in a g and b g, standard deviations kept, logarithms kept)
COARSE, FINE = (0.3, 0.3, 10.0, 29.0), (0.25, 0.25, 10.7, 33.0)


def points():
    """Return the 200 points (a, b, ln L) of the tests: ln L uniform in [ln 2, 300] in every other, else log-uniform."""
    generator = random.Random(SEED)
    low, high = math.log(2), 300.0
    rows = []
    for i in range(PAIRS):
        a, b, x = generator.uniform(-5, 5), generator.uniform(-5, 5), generator.random()
        rows.append((a, b, low + (high - low) * x if i % 2 else low * (high / low) ** x))
    return rows


def top(tilt, log_length, depth):
    """Return the s where (L - 1) log E e^{-uA} falls below -depth, in float64."""
    g = np.linspace(-1, 1, 1501) * (math.sqrt(2 * log_length) + 10)
    weight = np.exp(-(g**2) / 2)
    weight /= weight.sum()
    s = -log_length - tilt**2 / 2
    while True:
        size = np.exp(np.minimum(s + tilt * g, 6.6))
        lost = weight @ -np.expm1(-size)
        log_phi = math.log1p(-lost) if lost < 0.5 else math.log(weight @ np.exp(-size))
        if max(math.expm1(log_length), 1) * log_phi < -depth:
            return s
        s += 0.25


def integers(matrix):
    """Return rows of mpf as rows of integers, and the logarithm of each row's unit."""
    rows, units = [], []
    for row in matrix:
        largest = max((abs(x) for x in row), default=mp.mpf(0))
        exponent = mp.frexp(largest)[1] if largest else 0
        rows.append([int(mp.ldexp(x, BITS - exponent)) for x in row])
        units.append(mp.ldexp(mp.mpf(1), exponent - BITS))
    return np.array(rows, dtype=object), units


def products(left, right):
    """Return the matrix of mpf `left @ right.T`."""
    (rows, units), (columns, others) = left, right
    exact = rows.dot(columns.T)
    return [[mp.mpf(exact[i, j]) * units[i] * others[j] for j in range(len(others))] for i in range(len(units))]


def integrals(a, b, log_length, resolution):
    """Return C and G̃ at one point."""
    with mp.workdps(DIGITS):
        return _integrals(a, b, log_length, resolution)


def _integrals(a, b, log_length, resolution):
    level_step, phase_step, reach, drop = resolution
    largest = math.sqrt(2 * log_length)
    typical = sum(min(x**2 / 2, abs(x) * (largest + 1)) for x in (a, b))
    levels = []
    for tilt in (a, b):
        bottom = -log_length - tilt**2 / 2 - drop
        high = top(tilt, log_length, drop + 2 * log_length + typical)
        levels.append([mp.mpf(bottom) + level_step * k for k in range(math.ceil((high - bottom) / level_step) + 1)])
    places = (a, b, a + b, 2 * a, 2 * b, 0)
    low, high = max(min(places) - reach, -largest - reach), min(max(places) + reach, largest + reach)
    step = min(0.3, phase_step / max(abs(a), abs(b)))
    g = [mp.mpf(low) + step * k for k in range(math.ceil((high - low) / step) + 1)]
    normal = [step * mp.npdf(x) for x in g]
    a, b, length = mp.mpf(a), mp.mpf(b), mp.exp(mp.mpf(log_length))

    def factors(tilt, s):
        growth = [mp.exp(tilt * x) for x in g]
        size = [[mp.exp(level) * x for x in growth] for level in s]
        kept = [[mp.exp(-x) if x < 400 else mp.mpf(0) for x in row] for row in size]
        first = [[x * y for x, y in zip(*rows, strict=True)] for rows in zip(size, kept, strict=True)]
        second = [[x * y for x, y in zip(*rows, strict=True)] for rows in zip(size, first, strict=True)]
        lost = [[-mp.expm1(-x) if x < 400 else mp.mpf(1) for x in row] for row in size]
        return kept, first, second, lost

    def weighted(matrix, weight):
        return [[x * w for x, w in zip(row, weight, strict=True)] for row in matrix]

    kept, first, double, lost = factors(a, levels[0])
    other_kept, other_first, other_double, other_lost = (integers(matrix) for matrix in factors(b, levels[1]))
    away = [w * (x - a) for x, w in zip(g, normal, strict=True)]
    apart = [w * (x - b) for x, w in zip(g, normal, strict=True)]
    both = [w * (x - b) for x, w in zip(g, away, strict=True)]
    below = [mp.fsum(row) for row in weighted(lost, normal)]
    more = products(integers(weighted(kept, normal)), other_lost)
    one_one = products(integers(weighted(first, normal)), other_first)
    errors = products(integers(weighted(first, both)), other_first)
    if log_length <= PLAIN:
        from_a = products(integers(weighted(first, away)), other_kept)
        from_b = products(integers(weighted(kept, apart)), other_first)
    else:
        twice = products(integers(weighted(double, normal)), other_kept)
        other_twice = products(integers(weighted(kept, normal)), other_double)
        from_a = [[a * x + b * y for x, y in zip(*rows, strict=True)] for rows in zip(twice, one_one, strict=True)]
        from_b = [
            [b * x + a * y for x, y in zip(*rows, strict=True)] for rows in zip(other_twice, one_one, strict=True)
        ]
    participation, error = [], []
    for i, row in enumerate(more):
        for j, x in enumerate(row):
            log_phi = mp.log1p(-(below[i] + x)) if below[i] + x < 1 else mp.mpf(-200)
            pairs = length * mp.exp((length - 2) * log_phi)
            single = pairs * mp.exp(log_phi)
            participation.append(single * one_one[i][j])
            error.append(single * errors[i][j] + (length - 1) * pairs * from_a[i][j] * from_b[i][j])
    return level_step**2 * mp.fsum(participation), level_step**2 * mp.fsum(error)


def reference(a, b, log_length):
    """One row: the finer of two quadratures, and by how much the coarser disagrees."""
    coarse, fine = (integrals(a, b, log_length, each) for each in (COARSE, FINE))
    with mp.workdps(DIGITS):
        apart = [float(abs(x - y)) for x, y in zip(coarse, fine, strict=True)]
        numbers = [mp.nstr(value, STORED_DIGITS) for value in fine]
    row = {"a": a, "b": b, "log_length": log_length, "participation": numbers[0], "score_error": numbers[1]}
    row |= {"change": apart}
    print(row, flush=True)
    return row


def main():
    rows = [reference(*point) for point in points()[:STORED]]
    table = {"working_digits": DIGITS, "seed": SEED, "pairs": rows}
    PATH.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
