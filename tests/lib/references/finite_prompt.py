"""Writes finite_prompt.json: P and Q at random (τ, L), by a quadrature that shares nothing with lib.partition.

Plain trapezoids in mpmath, at 30 digits, of the untilted integrals, with u = y + τg and g ~ N(0, 1),

    P = L ∫ E[e^{2u} exp(-e^u)] φ^{L-1} dy
    Q = L ∫ E[(g-τ)² e^{2u} exp(-e^u)] φ^{L-1} dy + L(L-1) ∫ E[(g-τ) e^u exp(-e^u)]² φ^{L-2} dy

No Stein, no change of variable, no centring: 30 digits bear what cancels in the last expectation. The y and the
u of all nodes lie on one lattice of step h, so that the exponentials are computed once and every expectation is
a dot product with the same Gaussian weights. The lattice is walked to both sides until nothing is added.

    python tests/lib/references/finite_prompt.py     (half a minute)
"""

import json
import math
import random
from functools import cache
from itertools import count
from pathlib import Path

import mpmath as mp

PATH = Path(__file__).with_suffix(".json")
DIGITS = 30
STORED_DIGITS = 18
SEED = 20
PAIRS = 20
# (step in u, step in g, standard deviations kept): the smaller of the two steps counts
COARSE, FINE = (0.16, 0.5, 11), (0.12, 0.4, 12)
# What the walk along y leaves out, relative to the sum: far below double precision
NEGLIGIBLE = mp.mpf(10) ** -20


def integrals(tau, length, resolution=COARSE):
    """P, Q and the number of products it took."""
    with mp.workdps(DIGITS):
        return _integrals(mp.mpf(tau), length, *resolution)


def _integrals(tau, length, u_step, g_step, reach):
    h = min(mp.mpf(u_step), g_step * tau)
    low = math.ceil(reach * tau / h)
    high = math.ceil((reach + max(2 * tau, math.sqrt(2 * math.log(length)))) * tau / h)
    g = [h * k / tau for k in range(-low, high + 1)]
    weight = [h / tau * mp.npdf(x) for x in g]
    first = [(x - tau) * w for x, w in zip(g, weight, strict=True)]
    second = [(x - tau) ** 2 * w for x, w in zip(g, weight, strict=True)]
    dark = math.ceil(math.log(DIGITS * math.log(10) + 70) / h)  # beyond, exp(-e^u) is as good as zero

    @cache
    def at(n):
        e = mp.exp(h * n)
        return -mp.expm1(-e), e * mp.exp(-e), e**2 * mp.exp(-e)

    def integrand(j):
        lost, single, double = zip(*(at(n) for n in range(j - low, j + high + 1)), strict=True)
        alive = max(0, min(len(g), dark - j + low))
        single, double = single[:alive], double[:alive]
        below_one = mp.fdot(lost, weight)
        phi = 1 - below_one
        if phi < NEGLIGIBLE:
            return mp.mpf(0), mp.mpf(0)
        rest = mp.exp((length - 2) * mp.log1p(-below_one))
        p = length * rest * phi * mp.fdot(double, weight[:alive])
        diagonal = length * rest * phi * mp.fdot(double, second[:alive])
        return p, diagonal + length * (length - 1) * rest * mp.fdot(single, first[:alive]) ** 2

    start = -round((math.log(length) + tau**2 / 2) / h)
    totals, walked = [mp.mpf(0), mp.mpf(0)], 0
    for steps in (count(start), count(start - 1, -1)):
        quiet = 0
        for j in steps:
            parts = [h * part for part in integrand(j)]
            totals = [total + part for total, part in zip(totals, parts, strict=True)]
            walked += 1
            # The integrands have one peak each; the start may lie before it, so silence must last
            quiet = quiet + 1 if all(part < NEGLIGIBLE * t for part, t in zip(parts, totals, strict=True)) else 0
            if quiet * h > 3 and walked * h > 3:
                break
    return *totals, walked * len(g)


def draw():
    """The pairs: τ uniform in [0.05, 7], L log-uniform in {2, …, 10^12}."""
    generator = random.Random(SEED)
    return [(generator.uniform(0.05, 7), round(2 * 5e11 ** generator.random())) for _ in range(PAIRS)]


def reference(tau, length):
    """One row: the finer of two quadratures, and by how much the coarser disagrees."""
    with mp.workdps(DIGITS):
        *coarse, products = integrals(tau, length, COARSE)
        *fine, _ = integrals(tau, length, FINE)
        agreement = float(max(abs(a / b - 1) for a, b in zip(coarse, fine, strict=True)))
        numbers = (mp.nstr(value, STORED_DIGITS) for value in fine)
    print(f"tau {tau:.4f}  length {length:>13}  {products:>8} products  agreement {agreement:.1e}", flush=True)
    row = dict(zip(("participation", "score_error"), numbers, strict=True))
    return {"tau": tau, "length": length, **row, "agreement": agreement, "products": products}


def main():
    rows = [reference(*pair) for pair in draw()]
    table = {"working_digits": DIGITS, "seed": SEED, "pairs": rows}
    PATH.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
