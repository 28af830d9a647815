r"""Exact softmax weights of bounded scores, uniform on [-a, a], at any length.

As in `lib.partition`, Laplace's identity turns a ratio into an integral over y of averages over one token. For u
uniform on [y - a, y + a] these averages have closed forms: with w = e^{y+a} and w' = e^{y-a},

    E(1 - e^{-e^u}) = (Ein(w) - Ein(w'))/2a,   E e^{u-e^u} = (e^{-w'} - e^{-w})/2a,
    E e^{2u-e^u} = ((1 + w')e^{-w'} - (1 + w)e^{-w})/2a,   Ein(w) = ∫_0^w (1 - e^{-t})/t dt.

Derived here, see book/temperature_and_length.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.special import exp1, gammainc

from lib.partition import log_survival as log_survival_of_normals

# An integrand is cut where its logarithm is this far below its maximum; the step of the trapezoidal rule.
DROP, STEP = 40.0, 0.1

LogSurvival = Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]]


def participation(halfwidth: float, log_length: float) -> float:
    """Return `E Σp² = L ∫ E[e^{2u-e^u}] φ^{L-1} dy` of scores uniform on [-a, a], a > 0.

    It is about a coth(a)/L for long prompts.
    """
    y = _levels(halfwidth, log_length)
    token = (gammainc(2, np.exp(y + halfwidth)) - gammainc(2, np.exp(y - halfwidth))) / (2 * halfwidth)
    return float(STEP * np.sum(token * np.exp(log_length + _others(halfwidth, log_length, y))))


def typical_participation(halfwidth: float, log_length: float) -> float:
    """Return `exp E ln Σp²`, from `ln Σp² = ln S(2a) - 2 ln S(a)`."""
    return float(np.exp(mean_log_sum(2 * halfwidth, log_length) - 2 * mean_log_sum(halfwidth, log_length)))


def mean_log_sum(halfwidth: float, log_length: float) -> float:
    """Return `E ln S = -γ - ∫ y L E[e^{u-e^u}] φ^{L-1} dy`, where S is the sum of the L exponentials of the scores.

    The factor of y integrates to 1, so the integral is an average of y, which long prompts determine to more digits.
    """
    y = _levels(halfwidth, log_length)
    # e^{-w'} - e^{-w} without cancellation, up to a constant
    token = np.exp(-np.exp(y - halfwidth)) * -np.expm1(np.exp(y + halfwidth) * np.expm1(-2 * halfwidth))
    return float(-np.euler_gamma - np.average(y, weights=token * np.exp(_others(halfwidth, log_length, y))))


def log_survival(y: Float[np.ndarray, " n"], halfwidth: float) -> Float[np.ndarray, " n"]:
    """Return `ln φ(y) = ln E exp(-e^u)`, from 1 - φ where that is small, otherwise from φ."""
    lost = (_ein(y + halfwidth) - _ein(y - halfwidth)) / (2 * halfwidth)
    kept = (exp1(np.exp(np.minimum(y - halfwidth, 6.6))) - exp1(np.exp(np.minimum(y + halfwidth, 6.6)))) / (
        2 * halfwidth
    )
    with np.errstate(divide="ignore"):
        return np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(np.maximum(kept, 0.0)))


def relevant_weight(score: float, log_survival: LogSurvival, log_length: float) -> float:
    """Return the mean weight of a token of given score among L - 1 others: `∫ e^{v-e^v} φ(v - score)^{L-1} dv`."""
    v = np.arange(-DROP - 5, 5.0, STEP)
    log_others = np.expm1(log_length) * log_survival(v - score)
    return float(STEP * np.sum(np.exp(v - np.exp(v) + log_others)))


def log_survival_of_uniform(tau: float) -> LogSurvival:
    """Return `ln φ` of scores that are uniform on an interval, with standard deviation τ."""
    return lambda y: log_survival(y, np.sqrt(3.0) * tau)


def log_survival_of_normal(tau: float) -> LogSurvival:
    """Return `ln φ` of normal scores with standard deviation τ."""
    return lambda y: np.asarray(_log_survival_of_normals(y, tau))


_log_survival_of_normals = jax.jit(lambda y, tau: log_survival_of_normals(jnp.asarray(y), jnp.asarray(tau)))


def _levels(halfwidth: float, log_length: float) -> Float[np.ndarray, " n"]:
    """Return the nodes y: below them the average over one token falls like e^y, above them φ^{L-1} is negligible."""
    low = -log_length - halfwidth - DROP
    y = np.arange(low, halfwidth + 5.0, STEP)
    # beyond the last of these nodes φ^{L-1} is negligible, because the sum of exponentials is at least L e^{-a}
    alive = np.maximum(np.expm1(log_length), 1.0) * log_survival(y, halfwidth) > -3 * DROP
    return y[: np.count_nonzero(alive) + 1] if log_length > 0 else y


def _others(halfwidth: float, log_length: float, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return `(L - 1) ln φ`."""
    others = np.expm1(log_length)
    return others * log_survival(y, halfwidth) if others > 0 else np.zeros_like(y)


def _ein(log_w: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return `Ein(w) = γ + ln w + E₁(w)`, by its series where w is small."""
    w = np.exp(np.minimum(log_w, 700.0))
    small = np.minimum(w, 0.1)
    term, total = small, small.copy()
    for k in range(2, 12):
        term = -term * small / k
        total = total + term / k
    return np.where(w < 0.1, total, np.euler_gamma + log_w + exp1(np.maximum(w, 0.1)))
