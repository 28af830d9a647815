"""The Bayes risk: the mean weight that the posterior `p = softmax(scores)` gives to the wrong tokens [D26].

The risk is `1 - E p_ε = 1 - E Σ p²`. Both equalities of this module give it as integrals over y of products of
one-token expectations of `lib.partition`: with u = y + τg and g ~ N(0, 1),

    φ = E exp(-e^u),   a = E[e^u exp(-e^u)],   b = E[e^{2u} exp(-e^u)].

All integrands are positive, and they are summed as logarithms, so that a risk of 1e-270 has as many digits as one of ½.
Only `max_bayes_risk_by_squares` is a difference, with an absolute error.

In the spiked model the scores √ν χ have variance τ² = ν, and that of the relevant token has the mean ν. The joint
density of scores and relevant token is that of plain scores times `e^{√ν χ_ε - ν/2}/L`, so averages are taken over
identically distributed scores: `1 - E p_ε = (L - 1) e^{-ν/2} E[e^{√ν (χ_1 + χ_2)}/S]`, $S = Σ e^{√ν χ_l}$. Then the
scores of no token in these integrals are in the far tail of their distribution. In the max model τ = ν.
"""

import math
from collections.abc import Callable

import numpy as np

from lib._checks import public
from lib._namespace import constant, logsumexp, namespace
from lib._types import Scalar
from lib.partition import Resolution, _bracket, log_survival, log_tilted

# A scan brackets the integrand within a window that contains it for every task; the nodes are placed in the bracket.
SCAN_RESOLUTION, FINE_RESOLUTION = Resolution(count=72, step=0.5), Resolution(count=192)
# The window in standard deviations of a score: to the left of the largest token, to the right of all scores.
DEVIATIONS_LEFT, DEVIATIONS_RIGHT = 13.0, 10.0
SMALLEST_SPREAD = 1e-6


@public
def spiked_bayes_risk(length: Scalar, snr: Scalar) -> Scalar:
    """Return `1 - E p_ε = (L - 1) e^{-ν/2} ∫ e^{-y} a² φ^{L-2} dy` of the spiked model.

    Args:
      length: number L of tokens, shape (), $1 ≤ L ≤ 10^{12}$.
      snr: signal strength ν, shape (), 0 ≤ ν ≤ 2500.

    Returns:
      The risk, shape (), relative error below 1e-10.

    Source: derived here, box `two-integrals`. Transformations: jit, vmap, grad.
    """

    def log_integrand(y, tau, resolution):
        log_token = log_tilted(1, y, tau, resolution=resolution)
        return 2.0 * log_token - y + (length - 2.0) * log_survival(y, tau, resolution=resolution)

    log_integral = _log_integral(log_integrand, length, namespace(snr).sqrt(snr), snr)
    return (length - 1.0) * namespace(log_integral).exp(log_integral - 0.5 * snr)


@public
def spiked_bayes_risk_by_squares(length: Scalar, snr: Scalar) -> Scalar:
    """Return `1 - E Σ p² = (L - 1) e^{-ν/2} ∫ e^{-y} a [2bφ + (L - 2) a²] φ^{L-3} dy` of the spiked model.

    The integrand differs from that of `spiked_bayes_risk` by the derivative of the latter.

    Args:
      length: number L of tokens, shape (), $1 ≤ L ≤ 10^{12}$.
      snr: signal strength ν, shape (), 0 ≤ ν ≤ 2500.

    Returns:
      The risk, shape (), relative error below 1e-10.

    Source: derived here. Transformations: jit, vmap, grad.
    """

    def log_integrand(y, tau, resolution):
        log_token, log_square = (log_tilted(power, y, tau, resolution=resolution) for power in (1, 2))
        log_others = log_survival(y, tau, resolution=resolution)
        xp = namespace(log_others)
        with_hidden = math.log(2.0) + log_square + log_others
        without = xp.log(xp.maximum(length - 2.0, 0.0)) + 2.0 * log_token
        return log_token - y + xp.logaddexp(with_hidden, without) + (length - 3.0) * log_others

    log_integral = _log_integral(log_integrand, length, namespace(snr).sqrt(snr), snr)
    return (length - 1.0) * namespace(log_integral).exp(log_integral - 0.5 * snr)


@public
def max_bayes_risk(length: Scalar, tau: Scalar) -> Scalar:
    """Return `1 - E Σ p² = L(L - 1) ∫ a² φ^{L-2} dy` of the max model.

    Args:
      length: number L of tokens, shape (), $1 ≤ L ≤ 10^{12}$.
      tau: standard deviation τ = ν of the scores, shape (), 0 ≤ τ ≤ 1000.

    Returns:
      The risk, shape (), relative error below 1e-10 up to τ = 500 and below 1e-8 up to 1000.

    Source: derived here. Transformations: jit, vmap, grad.
    """

    def log_integrand(y, tau, resolution):
        log_token = log_tilted(1, y, tau, resolution=resolution)
        return 2.0 * log_token + (length - 2.0) * log_survival(y, tau, resolution=resolution)

    log_integral = _log_integral(log_integrand, length, tau, 0.0)
    return length * (length - 1.0) * namespace(log_integral).exp(log_integral)


@public
def max_bayes_risk_by_squares(length: Scalar, tau: Scalar) -> Scalar:
    """Return `1 - L ∫ b φ^{L-1} dy` of the max model, the same risk as a difference.

    Args:
      length: number L of tokens, shape (), $1 ≤ L ≤ 10^{12}$.
      tau: standard deviation τ = ν of the scores, shape (), 0 ≤ τ ≤ 1000.

    Returns:
      The risk, shape (), absolute error below 1e-10.

    Source: [D26]. Transformations: jit, vmap, grad.
    """

    def log_integrand(y, tau, resolution):
        log_square = log_tilted(2, y, tau, resolution=resolution)
        return log_square + (length - 1.0) * log_survival(y, tau, resolution=resolution)

    log_integral = _log_integral(log_integrand, length, tau, 0.0)
    return 1.0 - length * namespace(log_integral).exp(log_integral)


def window(length: Scalar, tau: Scalar, snr: Scalar) -> tuple[Scalar, Scalar]:
    """Return levels outside which the integrands of this module are negligible, for scores of standard deviation τ."""
    xp = namespace(length, tau, snr)
    low = -xp.log(length) - DEVIATIONS_LEFT * tau - snr - FINE_RESOLUTION.drop - 4.0
    return low, DEVIATIONS_RIGHT * tau + 4.0


def log_trapezoid(log_integrand: Callable, low: Scalar, high: Scalar, *, scans: int = 1, step: float = math.inf):
    """Return `log ∫ exp(log_integrand) dy` of an integrand with one maximum, by a trapezoid in a scanned bracket.

    Args:
      log_integrand: maps levels and a `Resolution` to the logarithm.
      low: the left end of the window, shape ().
      high: its right end, shape ().
      scans: number of scans, each in the bracket of the previous one.
      step: the largest distance of two nodes; it applies only to known ends.
    """
    xp = namespace(low, high)
    for _ in range(scans):
        (coarse,) = constant(xp.linspace(low, high, SCAN_RESOLUTION.count))
        (height,) = constant(log_integrand(coarse, SCAN_RESOLUTION))
        first, last = _bracket(height, FINE_RESOLUTION.drop)
        low, high = coarse[xp.maximum(first - 1, 0)], coarse[xp.minimum(last + 1, SCAN_RESOLUTION.count - 1)]
    count = FINE_RESOLUTION.count if xp is not np else max(FINE_RESOLUTION.count, math.ceil((high - low) / step))
    y = xp.linspace(low, high, count)
    return logsumexp(log_integrand(y, FINE_RESOLUTION)) + xp.log(y[1] - y[0])


def _log_integral(log_integrand: Callable, length, tau, snr) -> Scalar:
    """Return `log ∫ exp(log_integrand) dy` in the window of the task, at scores that differ at least a little."""
    tau = namespace(length, tau, snr).maximum(tau, SMALLEST_SPREAD)
    return log_trapezoid(lambda y, resolution: log_integrand(y, tau, resolution), *window(length, tau, snr))
