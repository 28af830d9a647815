"""The one-sample problem inside the replica equations: the best scores and values near the fields of a prompt.

For one prompt with fields `ω_k`, `ω_v` and label y, minimise over scores χ and values z

    `|χ - ω_k|²/(2 V_k) + |z - ω_v|²/(2 V_v) + ½ (y - s(χ)·z)²`.

The best values are explicit: `z = ω_v + V_v t s` with `t = (y - s·ω_v)/(1 + V_v|s|²)`. A problem in the L scores is
left, `|χ - ω_k|²/(2 V_k) + ½ (y - s·ω_v)²/(1 + V_v|s|²)`: least squares, with one residual besides the L trivial ones.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import public
from lib._types import AnyArray

Weights = Callable[[Float[Array, " L"]], Float[AnyArray, " L"]]

# Safeguarded Newton steps of the linear prox, enough for the last bit of float64.
NEWTON_STEPS = 40
# Gauss-Newton steps from every start, and the shares of a step that are tried.
GAUSS_NEWTON_STEPS = 4
STEP_SIZES = np.asarray([1.0, 0.5, 0.2, 0.04])


class Channel(eqx.Module):
    """One prompt of the replica theory: fields of scores and values, how far each may move, and the label."""

    omega_k: Float[Array, "*stack L"]
    omega_v: Float[Array, "*stack L"]
    var_k: Float[Array, "*stack"]
    var_v: Float[Array, "*stack"]
    label: Float[Array, "*stack"]

    @public
    def residual(self, weights: Float[AnyArray, " L"]) -> Float[Array, ""]:
        """Return `(y - s·ω_v)/√(1 + V_v|s|²)`, the residual at the best values, in units of its cost."""
        return (self.label - weights @ self.omega_v) / jnp.sqrt(1.0 + self.var_v * weights @ weights)

    @public
    def values(self, weights: Float[AnyArray, " L"]) -> Float[Array, " L"]:
        """Return the best values given the weights, `ω_v + V_v (y - s·ω_v)/(1 + V_v|s|²) s`."""
        scale = (self.label - weights @ self.omega_v) / (1.0 + self.var_v * weights @ weights)
        return self.omega_v + self.var_v * scale * weights

    @public
    def energy(self, weights: Weights, chi: Float[Array, " L"]) -> Float[Array, ""]:
        """Return the minimised function of the scores, with the best values inserted."""
        displacement = chi - self.omega_k
        return 0.5 * displacement @ displacement / self.var_k + 0.5 * self.residual(weights(chi)) ** 2


@public
def gauss_newton_scores(weights: Weights, channel: Channel, starts: Float[Array, "starts L"]) -> Float[Array, " L"]:
    """Return the lowest point that a few damped Gauss-Newton steps reach from `starts`, for smooth `weights`."""

    def step(_, best):
        chi, energy = best
        rho, slope = jax.value_and_grad(lambda scores: channel.residual(weights(scores)))(chi)
        multiplier = (rho - slope @ (chi - channel.omega_k)) / (1.0 + channel.var_k * slope @ slope)
        direction = channel.omega_k - channel.var_k * multiplier * slope - chi
        tried = chi + STEP_SIZES[:, None] * direction
        return _lowest(jnp.concatenate([tried, chi[None]]), jnp.append(energies(tried), energy))

    def descend(chi, energy):
        return jax.lax.fori_loop(0, GAUSS_NEWTON_STEPS, step, (chi, energy))

    energies = jax.vmap(lambda chi: channel.energy(weights, chi))
    return _lowest(*jax.vmap(descend)(starts, energies(starts)))[0]


def _lowest(
    candidates: Float[Array, "candidates L"], energies: Float[Array, " candidates"]
) -> tuple[Float[Array, " L"], Float[Array, ""]]:
    index = jnp.argmin(energies)
    return candidates[index], energies[index]


@public
def linear_scores(channel: Channel) -> Float[Array, " L"]:
    """Return the exact minimum for `s = 1 + χ`, by one monotone equation in `t = y - s·z`, $|t| < 1/√(V_k V_v)$."""
    a, b = 1.0 + channel.omega_k, channel.omega_v
    product = channel.var_k * channel.var_v
    linear_coefficient = a @ a * channel.var_v + b @ b * channel.var_k

    def excess(t):
        return (
            t + (t * linear_coefficient + a @ b * (1.0 + product * t**2)) / (1.0 - product * t**2) ** 2 - channel.label
        )

    def bisect_or_newton(_, bracket):
        low, high, t = bracket
        error, slope = jax.value_and_grad(excess)(t)
        low, high = jnp.where(error > 0, low, t), jnp.where(error > 0, t, high)
        newton = t - error / slope
        return low, high, jnp.where((low < newton) & (newton < high), newton, 0.5 * (low + high))

    edge = 1.0 / jnp.sqrt(product)
    *_, t = jax.lax.fori_loop(0, NEWTON_STEPS, bisect_or_newton, (-edge, edge, jnp.zeros_like(edge)))
    return (a + channel.var_k * t * b) / (1.0 - product * t**2) - 1.0
