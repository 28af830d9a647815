"""The Bayes risk: how unsure the posterior `p = softmax(scores)` of the hidden token is, by two integrals [D26].

The posterior is a softmax of independent normal scores of variance τ², the hidden one's mean higher by `shift`:
τ² = shift = ν in the spiked model, τ = ν and no shift in the max model. What it puts on the hidden token and its own
participation have the same mean, `E p_ε = E Σ p²`, and `1 -` that is the risk. With `lib.partition` both are positive
sums for the risk, so that it is known relative to its size where it is 1e-12.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib.partition import Resolution, log_survival, log_tilted

# A scan finds where the integrand is, in a window as wide as any score; nodes are then spent only there.
SCAN, FINE = Resolution(levels=72, step=0.5), Resolution(levels=144)
# Standard deviations of the widest window: left as far as the largest token, right as far as lib.partition knows φ.
LEFT, RIGHT, DROP = 13.0, 10.0, 42.0
SMALLEST = 1e-6


def missed(length: Float[Array, ""], tau: Float[Array, ""], shift: float | Float[Array, ""]) -> Float[Array, ""]:
    """`1 - E p_ε = (L - 1) ∫ a₀ φ₀^{L-2} φ₁ dy`: what the posterior leaves to all the others [D26]."""

    def log_integrand(y, tau, resolution):
        log_token = log_tilted(1, y, tau, resolution=resolution)
        log_hidden = log_survival(y + shift, tau, resolution=resolution)
        return log_token + log_hidden + (length - 2.0) * log_survival(y, tau, resolution=resolution)

    return (length - 1.0) * _integral(log_integrand, length, tau, shift)


def spread(length: Float[Array, ""], tau: Float[Array, ""], shift: float | Float[Array, ""]) -> Float[Array, ""]:
    """`1 - E Σ p² = E Σ_{l≠m} p_l p_m`, over pairs with the hidden token and pairs without. Derived here."""

    def log_integrand(y, tau, resolution):
        log_token = log_tilted(1, y, tau, resolution=resolution)
        log_others = log_survival(y, tau, resolution=resolution)
        log_hidden = log_survival(y + shift, tau, resolution=resolution)
        with_hidden = jnp.log(2.0) + log_tilted(1, y + shift, tau, resolution=resolution) + log_others
        without = jnp.log(jnp.maximum(length - 2.0, 0.0)) + log_token + log_hidden
        return log_token + jnp.logaddexp(with_hidden, without) + (length - 3.0) * log_others

    return (length - 1.0) * _integral(log_integrand, length, tau, shift)


def alike(length: Float[Array, ""], tau: Float[Array, ""]) -> Float[Array, ""]:
    """`1 - E Σ p² = L(L - 1) ∫ a₀² φ₀^{L-2} dy`: `spread` where no token is special, so there is less to integrate."""

    def log_integrand(y, tau, resolution):
        log_token = log_tilted(1, y, tau, resolution=resolution)
        return 2.0 * log_token + (length - 2.0) * log_survival(y, tau, resolution=resolution)

    return length * (length - 1.0) * _integral(log_integrand, length, tau, 0.0)


def diagonal(length: Float[Array, ""], tau: Float[Array, ""]) -> Float[Array, ""]:
    """The same as `1 - L ∫ b₀ φ₀^{L-1} dy` [D26], accurate in absolute terms, for τ up to a thousand."""

    def log_integrand(y, tau, resolution):
        log_square = log_tilted(2, y, tau, resolution=resolution)
        return log_square + (length - 1.0) * log_survival(y, tau, resolution=resolution)

    return 1.0 - length * _integral(log_integrand, length, tau, 0.0)


def _integral(log_integrand: Callable, length, tau, shift) -> Float[Array, ""]:
    """Over all y, of an integrand with one hump: a scan brackets it, a trapezoid adds it up."""
    tau = jnp.maximum(tau, SMALLEST)
    low, high = -jnp.log(length) - LEFT * tau - shift - DROP - 4.0, RIGHT * tau + 4.0 - shift
    coarse = jax.lax.stop_gradient(jnp.linspace(low, high, SCAN.levels))
    height = jax.lax.stop_gradient(log_integrand(coarse, tau, SCAN))
    inside = height > jnp.max(height) - DROP
    first, last = jnp.argmax(inside), SCAN.levels - 1 - jnp.argmax(inside[::-1])
    at = coarse[jnp.clip(jnp.stack([first - 1, last + 1]), 0, SCAN.levels - 1)]
    y = jnp.linspace(at[0], at[1], FINE.levels)
    return (y[1] - y[0]) * jnp.sum(jnp.exp(log_integrand(y, tau, FINE)))
