"""Print Bayes risks at the edges of their domain, without the change of measure that lib uses.

With u normal around y and e^{u - e^u} on a lattice, at 22 digits:

    spiked   (L - 1) ∫ a(y) φ(y)^{L-2} φ(y + ν) dy      the hidden token is in the tail of its own distribution
    max      L (L - 1) ∫ a(y)² φ(y)^{L-2} dy

    a = E e^{u - e^u} = ∫ e^{u - e^u} N(u; y, τ²) du,   φ = E exp(-e^u) = ∫ e^{u - e^u} P(score < u) du

The second column is the relative difference of a coarser lattice.

    python tests/lib/references/bayes_risk.py     (up to twenty minutes for weak hints, one or two for most)
"""

from functools import cache

import mpmath as mp

CASES = [
    *[("spiked", 2, 240), ("spiked", 2, 1000), ("spiked", 3, 1000), ("spiked", 100, 300), ("spiked", 10**6, 140)],
    *[("spiked", 10**12, 1000), ("spiked", 10**12, 20), ("spiked", 10**12, 110), ("spiked", 3, 0.001)],
    *[("max", 10, 1000), ("max", 10**12, 7.4), ("max", 3, 0.01)],
]
NEGLIGIBLE = mp.mpf(10) ** -19


def bayes_risk(model, length, snr, refine=1):
    """The risk with all steps divided by `refine`."""
    snr = mp.mpf(snr)
    tau, shift = (mp.sqrt(snr), snr) if model == "spiked" else (snr, mp.mpf(0))
    h = min(mp.mpf("0.2"), tau * mp.mpf("0.3")) / refine

    @cache
    def kernel(n):
        return mp.exp(n * h - mp.exp(n * h))

    def expectation(term, y):
        """The lattice from above to where nothing is added."""
        low, largest, total = min(mp.mpf(0), y + tau**2), mp.mpf(0), mp.mpf(0)
        for n in range(int(mp.ceil(5 / h)), int(mp.floor((low - 12 * tau - 60) / h)) - 1, -1):
            value = kernel(n) * term((n * h - y) / tau)
            total, largest = total + value, max(largest, value)
            if value < NEGLIGIBLE * largest and n * h < low:
                break
        return total * h

    def integrand(y):
        token, lost = expectation(mp.npdf, y) / tau, expectation(lambda z: mp.ncdf(-z), y)
        known = lost < 1 - mp.mpf(10) ** -21
        others = mp.exp((length - 2) * mp.log1p(-lost)) if known else mp.mpf(length == 2)
        if model == "spiked":
            return (length - 1) * token * others * expectation(mp.ncdf, y + shift)
        return length * (length - 1) * token**2 * others

    step = max(mp.mpf("0.25"), tau * mp.mpf("0.05")) / refine
    log_length = mp.log(length)
    frozen = tau**2 > 2 * log_length
    start = -max(shift / 2, tau * mp.sqrt(2 * log_length) if frozen else log_length + tau**2 / 2)
    total = mp.mpf(0)
    for direction in (1, -1):
        k, quiet = (0 if direction > 0 else -1), 0
        while quiet * step <= 3 * max(1, tau / 4):
            part = step * integrand(start + k * step)
            total += part
            quiet = quiet + 1 if part < 10 * NEGLIGIBLE * total else 0
            k += direction
    return total


def main():
    for case in CASES:
        with mp.workdps(22):
            coarse, fine = bayes_risk(*case), bayes_risk(*case, refine=mp.mpf("1.25"))
            print(*case, mp.nstr(fine, 16), mp.nstr(coarse / fine - 1, 2), flush=True)


if __name__ == "__main__":
    main()
