"""Print P, Q and E ln S of Gaussian prompts at the edges of their domain, by trapezoids that share no code with lib.

Expectations over a normal score are sums over a lattice of u, where e^{u - e^u} lives, at 25 digits.

    python tests/lib/references/long_prompts.py     (minutes)
"""

import mpmath as mp
import numpy as np

LN2 = mp.log(2)
CASES = [(30, 330), (30, LN2), (60, 330), (60, LN2)]


def finite_prompt(tau, log_length, refine=1):
    """P, Q and E ln S with the steps divided by `refine`."""
    tau, length, step = mp.mpf(tau), mp.exp(mp.mpf(log_length)), mp.mpf("0.3") / refine
    us = [step * k for k in range(int(-450 / step), int(5.5 / step))]
    kernel = [(mp.exp(u - mp.exp(u)), mp.exp(2 * u - mp.exp(u))) for u in us]
    frozen = mp.sqrt(2 * mp.mpf(log_length) + 1)
    spacing = min(tau / 14, tau * mp.mpf("0.3") / frozen) / refine

    def terms(y):
        g = [(u - y) / tau for u in us]
        density = [mp.npdf(x) * step / tau for x in g]
        lost = step * mp.fsum(one * mp.ncdf(-x) for (one, _), x in zip(kernel, g, strict=True))
        if lost > 1 - mp.mpf(10) ** -15:
            return np.zeros(3, dtype=object)
        rest, fewer = (mp.exp((length - kept) * mp.log1p(-lost)) for kept in (1, 2))
        token = mp.fsum(one * w for (one, _), w in zip(kernel, density, strict=True))
        square = mp.fsum(two * w for (_, two), w in zip(kernel, density, strict=True))
        away = mp.fsum(two * (x - tau) ** 2 * w for (_, two), x, w in zip(kernel, g, density, strict=True))
        mean = mp.fsum(one * (x - tau) * w for (one, _), x, w in zip(kernel, g, density, strict=True))
        pairs = length * (length - 1) * mean**2 * fewer
        return np.array([length * square * rest, length * away * rest + pairs, -y * length * token * rest])

    totals = np.zeros(3, dtype=object)
    for direction in (1, -1):
        k, quiet = (0 if direction > 0 else -1), 0
        while quiet < 8:
            part = spacing * terms(-tau * frozen + k * spacing)
            totals = totals + part
            quiet = quiet + 1 if all(abs(part) <= mp.mpf(10) ** -17 * abs(totals)) else 0
            k += direction
    return totals[0], totals[1], totals[2] - mp.euler


def main():
    for case in CASES:
        with mp.workdps(25):
            found = finite_prompt(*case)
            print(*(mp.nstr(value, 15) for value in (*case, *found)), flush=True)


if __name__ == "__main__":
    main()
