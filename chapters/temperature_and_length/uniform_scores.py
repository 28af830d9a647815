r"""Scores that are bounded, uniform on [-a, a]: softmax weights exactly, at any length, from closed one-token averages.

As in `lib.partition`, Laplace's identity makes a ratio an integral over y of one-token averages, here with u uniform on
[y - a, y + a], in closed form: with w = e^{y+a} and w' = e^{y-a},

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

# Natural logarithms that an integrand falls before it is cut, and the step of the trapezoid.
DROP, STEP = 40.0, 0.1

LogSurvival = Callable[[Float[np.ndarray, " n"]], Float[np.ndarray, " n"]]


def participation(halfwidth: float, log_length: float) -> float:
    """`E Σp² = L ∫ E[e^{2u-e^u}] φ^{L-1} dy`, scores uniform on [-a, a], a > 0. About a coth(a)/L for long prompts."""
    y = _levels(halfwidth, log_length)
    token = (gammainc(2, np.exp(y + halfwidth)) - gammainc(2, np.exp(y - halfwidth))) / (2 * halfwidth)
    return float(STEP * np.sum(token * np.exp(log_length + _others(halfwidth, log_length, y))))


def typical(halfwidth: float, log_length: float) -> float:
    """`exp E ln Σp²`, from `ln Σp² = ln S(2a) - 2 ln S(a)`."""
    return float(np.exp(mean_log_sum(2 * halfwidth, log_length) - 2 * mean_log_sum(halfwidth, log_length)))


def mean_log_sum(halfwidth: float, log_length: float) -> float:
    """`E ln S = -γ - L ∫ y E[e^{u-e^u}] φ^{L-1} dy`, S the sum of L exponentials of the scores."""
    y = _levels(halfwidth, log_length)
    token = (np.exp(-np.exp(y - halfwidth)) - np.exp(-np.exp(y + halfwidth))) / (2 * halfwidth)
    # where both exponentials are next to 1, their difference as it is
    small = y + halfwidth < -30
    token[small] = np.exp(y[small] + halfwidth) * -np.expm1(-2 * halfwidth) / (2 * halfwidth)
    return float(-np.euler_gamma - STEP * np.sum(y * token * np.exp(log_length + _others(halfwidth, log_length, y))))


def log_survival(y: Float[np.ndarray, " n"], halfwidth: float) -> Float[np.ndarray, " n"]:
    """`ln φ(y) = ln E exp(-e^u)`; the small difference from one is what is computed where it is small."""
    lost = (_ein(y + halfwidth) - _ein(y - halfwidth)) / (2 * halfwidth)
    kept = (exp1(np.exp(np.minimum(y - halfwidth, 6.6))) - exp1(np.exp(np.minimum(y + halfwidth, 6.6)))) / (
        2 * halfwidth
    )
    with np.errstate(divide="ignore"):
        return np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(np.maximum(kept, 0.0)))


def needle_weight(score: float, log_survival: LogSurvival, log_length: float) -> float:
    """Mean weight of one token of a given score among L - 1 others: `∫ e^{v-e^v} φ(v - score)^{L-1} dv`."""
    v = np.arange(-DROP - 5, 5.0, STEP)
    log_others = np.expm1(log_length) * log_survival(v - score)
    return float(STEP * np.sum(np.exp(v - np.exp(v) + log_others)))


def uniform_hay(tau: float) -> LogSurvival:
    """`ln φ` of scores uniform on an interval, of standard deviation τ."""
    return lambda y: log_survival(y, np.sqrt(3.0) * tau)


def normal_hay(tau: float) -> LogSurvival:
    """`ln φ` of normal scores of standard deviation τ."""
    return lambda y: np.asarray(_log_survival_of_normals(y, tau))


_log_survival_of_normals = jax.jit(lambda y, tau: log_survival_of_normals(jnp.asarray(y), jnp.asarray(tau)))


def _levels(halfwidth: float, log_length: float) -> Float[np.ndarray, " n"]:
    """Nodes: to the left a token's part falls like e^y from where the sum's exponentials are, to the right φ^{L-1}."""
    low = -log_length - halfwidth - DROP
    y = np.arange(low, halfwidth + 5.0, STEP)
    # the sum is largest at e^{a}L: to the right of its smallest logarithm all is lost
    alive = np.maximum(np.expm1(log_length), 1.0) * log_survival(y, halfwidth) > -3 * DROP
    return y[: np.count_nonzero(alive) + 1] if log_length > 0 else y


def _others(halfwidth: float, log_length: float, y: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """`(L - 1) ln φ`."""
    others = np.expm1(log_length)
    return others * log_survival(y, halfwidth) if others > 0 else np.zeros_like(y)


def _ein(log_w: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """`Ein(w) = γ + ln w + E₁(w)`, by its series where w is small."""
    w = np.exp(np.minimum(log_w, 700.0))
    small = np.minimum(w, 0.1)
    term, total = small, small.copy()
    for k in range(2, 12):
        term = -term * small / k
        total = total + term / k
    return np.where(w < 0.1, total, np.euler_gamma + log_w + exp1(np.maximum(w, 0.1)))
