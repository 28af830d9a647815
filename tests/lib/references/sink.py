"""Writes sink.json: E p_0, P and Q with a sink at random (τ, L, b), by a quadrature that shares nothing with `lib`.

Plain trapezoids in mpmath, at 30 digits, of the untilted integrals, with u = y + τg, g ~ N(0, 1), k = exp(-e^{y+b}),

    E p_0 = ∫ e^{y+b} k φ^L dy        P = L ∫ E[e^{2u} exp(-e^u)] k φ^{L-1} dy
    Q = L ∫ E[(g-τ)² e^{2u} exp(-e^u)] k φ^{L-1} dy + L(L-1) ∫ E[(g-τ) e^u exp(-e^u)]² k φ^{L-2} dy
        - 2τL ∫ e^{y+b} k E[(g-τ) e^u exp(-e^u)] φ^{L-1} dy + τ² ∫ e^{2(y+b)} k φ^L dy

No Stein, no change of variable: Q is the mean of (Σ p_i (g_i - τ) - τ p_0)². All y and u lie on one lattice of step h.

    python tests/lib/references/sink.py     (three minutes)
"""

import json
import math
import random
from functools import cache
from itertools import count
from pathlib import Path

import mpmath as mp

PATH = Path(__file__).with_suffix(".json")
DIGITS, STORED_DIGITS, SEED, TRIPLES = 30, 18, 21, 30
# (step in u, step in g, standard deviations kept): the smaller of the two steps counts
COARSE, FINE = (0.16, 0.5, 11), (0.12, 0.4, 12)
# What the walk along y leaves out, relative to each sum
NEGLIGIBLE = mp.mpf(10) ** -22


def statistics(tau, length, sink, resolution=COARSE):
    """E p_0, P and Q."""
    with mp.workdps(DIGITS):
        return _statistics(mp.mpf(tau), length, mp.mpf(sink), resolution)


def _statistics(tau, length, sink, resolution):
    u_step, g_step, reach = resolution
    h = min(mp.mpf(u_step), g_step * tau)
    low = math.ceil(reach * tau / h)
    high = math.ceil((reach + max(2 * tau, math.sqrt(2 * math.log(length)))) * tau / h)
    g = [h * n / tau for n in range(-low, high + 1)]
    weight = [h / tau * mp.npdf(x) for x in g]
    first = [(x - tau) * w for x, w in zip(g, weight, strict=True)]
    second = [(x - tau) ** 2 * w for x, w in zip(g, weight, strict=True)]
    dark = math.ceil(math.log(DIGITS * math.log(10) + 70) / h)  # beyond, exp(-e^u) is as good as zero

    @cache
    def at(n):
        e = mp.exp(h * n)
        return -mp.expm1(-e), e * mp.exp(-e), e**2 * mp.exp(-e)

    def integrands(j):
        lost, single, double = zip(*(at(n) for n in range(j - low, j + high + 1)), strict=True)
        alive = max(0, min(len(g), dark - j + low))
        single, double = single[:alive], double[:alive]
        below_one = mp.fdot(lost, weight)
        if (phi := 1 - below_one) < NEGLIGIBLE:
            return [mp.mpf(0)] * 3
        own = mp.exp(h * j + sink)
        rest = mp.exp((length - 2) * mp.log1p(-below_one) - own)
        slope = mp.fdot(single, first[:alive])
        diagonal = length * phi * mp.fdot(double, second[:alive])
        pairs = length * (length - 1) * slope**2
        with_sink = -2 * tau * length * own * slope * phi + tau**2 * own**2 * phi**2
        p = length * phi * mp.fdot(double, weight[:alive])
        return [rest * own * phi**2, rest * p, rest * (diagonal + pairs + with_sink)]

    start = -round(max(math.log(length) + tau**2 / 2, sink) / h)
    totals, walked = [mp.mpf(0)] * 3, 0
    for steps in (count(start), count(start - 1, -1)):
        quiet = 0
        for j in steps:
            parts = [h * part for part in integrands(j)]
            totals = [total + part for total, part in zip(totals, parts, strict=True)]
            walked += 1
            # each integrand has one peak; the start may lie before it, so silence must last
            quiet = quiet + 1 if all(part <= NEGLIGIBLE * t for part, t in zip(parts, totals, strict=True)) else 0
            if quiet * h > 3 and walked * h > 3:
                break
    return totals


def triples():
    """Random (τ, L, b) with sinks that have little of the weight, half of it, or most."""
    draw = random.Random(SEED)
    for _ in range(TRIPLES):
        tau, length = draw.uniform(0.05, 7), round(10 ** draw.uniform(0.31, 12))
        ratio = tau / math.sqrt(2 * math.log(length))
        log_sum = math.log(length) * (1 + ratio**2 if ratio < 1 else 2 * ratio)
        yield round(tau, 4), length, round(log_sum + draw.uniform(-8, 8), 4)


def main():
    """Write every triple with the agreement of two resolutions."""
    rows = []
    for tau, length, sink in triples():
        coarse, fine = (statistics(tau, length, sink, each) for each in (COARSE, FINE))
        names = ("sink_weight", "participation", "score_error")
        with mp.workdps(DIGITS):
            agreement = max(abs(a / b - 1) for a, b in zip(coarse, fine, strict=True))
            values = {name: mp.nstr(value, STORED_DIGITS) for name, value in zip(names, fine, strict=True)}
        rows.append({"tau": tau, "length": length, "sink": sink} | values | {"agreement": float(agreement)})
        print(rows[-1])
    PATH.write_text(json.dumps({"working_digits": DIGITS, "triples": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
