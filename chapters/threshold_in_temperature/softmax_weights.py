"""Averages of softmax weights over Gaussian scores, of which one has another mean and another variance.

The relevant token has the score N(m, t²), the L - 1 others have scores N(0, τ²), and all are independent. Laplace's
identity `Γ(j)/S^j = ∫ e^{jy} exp(-e^y S) dy` turns averages of the weights into integrals over y of one-token
expectations of `lib.partition`. With $u_0 = y + τg$ and $u_1 = y + m + tg$, g ~ N(0, 1), and

    φ_i = E exp(-e^{u_i}),   a_i = E[e^{u_i} exp(-e^{u_i})],   b_i = E[e^{2 u_i} exp(-e^{u_i})],

the averages are `E p_1 = ∫ a_1 φ_0^{L-1} dy`, `E p_1² = ∫ b_1 φ_0^{L-1} dy` and `E Σ_{l>1} p_l² = (L - 1) ∫ b_0 φ_1
φ_0^{L-2} dy`, as in [D26]. All integrands are positive.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib.partition import log_survival, log_tilted

Scalar = float | Float[Array, ""]

# Nodes that find the integrands and nodes that integrate them, and the logarithms that they fall before they are cut.
SCAN_NODES, NODES, LOG_DROP = 128, 768, 42.0
# The domain: standard deviations of scores, the length, and the mean of the relevant score in standard deviations.
LARGEST_SPREAD, LARGEST_LOG_LENGTH, LARGEST_SHIFT = 30.0, 330.0, 40.0
# How far the mean weights of all tokens may miss 1.
MASS_TOLERANCE = 1e-9


class WeightAverages(eqx.Module):
    """Averages of the softmax weights p of a prompt, token 1 the relevant one.

    Attributes:
      relevant: `E p_1`.
      relevant_square: `E p_1²`.
      others_square: `E Σ_{l>1} p_l²`, the part of the other tokens in the participation.
    """

    relevant: Float[Array, ""]
    relevant_square: Float[Array, ""]
    others_square: Float[Array, ""]


def softmax_weight_averages(
    log_length: Scalar, shift: Scalar, spread: Scalar, relevant_spread: Scalar
) -> WeightAverages:
    """Return `E p_1`, `E p_1²` and `E Σ_{l>1} p_l²` of softmax weights, where token 1 has a score N(m, t²).

    Args:
      log_length: natural logarithm of the number L of tokens, shape (), ln 2 ≤ log_length ≤ 330.
      shift: mean m of the relevant score, shape (), at most 40 max(τ, t, 1) in absolute value.
      spread: standard deviation τ of the other scores, shape (), 0 < τ ≤ 30.
      relevant_spread: standard deviation t of the relevant score, shape (), 0 < t ≤ 30.

    Returns:
      The averages, each of shape (), with an absolute error below 1e-10. NaN outside the domain, and where the mean
      weights of all tokens do not add up to 1 to 1e-9.

    Source: derived here, after [D26]. Transformations: jit, vmap, grad.
    """
    log_length, shift, spread, relevant_spread = map(jnp.asarray, (log_length, shift, spread, relevant_spread))
    others = jnp.expm1(log_length)
    widest = jnp.maximum(spread, relevant_spread)

    def log_integrands(y):
        """Logarithms of the integrands of $𝔼 p_1$, of $Σ_{l>1} 𝔼 p_l$, of $𝔼 p_1²$ and of $𝔼 Σ_{l>1} p_l²$."""
        log_others = log_survival(y, spread)
        log_relevant = log_survival(y + shift, relevant_spread)
        without_relevant = others * log_others
        without_another = jnp.log(others) + (others - 1.0) * log_others + log_relevant
        return jnp.stack(
            [
                log_tilted(1, y + shift, relevant_spread) + without_relevant,
                log_tilted(1, y, spread) + without_another,
                log_tilted(2, y + shift, relevant_spread) + without_relevant,
                log_tilted(2, y, spread) + without_another,
            ]
        )

    low = -log_length - 13.0 * widest - widest**2 - jnp.abs(shift) - LOG_DROP - 4.0
    coarse = jax.lax.stop_gradient(jnp.linspace(low, 10.0 * widest + 4.0 + jnp.abs(shift), SCAN_NODES))
    in_bracket = jnp.max(jax.lax.stop_gradient(log_integrands(coarse)), axis=0) > -LOG_DROP
    first, last = jnp.argmax(in_bracket), SCAN_NODES - 1 - jnp.argmax(in_bracket[::-1])
    ends = coarse[jnp.clip(jnp.stack([first - 1, last + 1]), 0, SCAN_NODES - 1)]
    y = jnp.linspace(ends[0], ends[1], NODES)
    relevant, rest, relevant_square, others_square = (y[1] - y[0]) * jnp.sum(jnp.exp(log_integrands(y)), axis=1)
    known = (spread > 0) & (relevant_spread > 0) & (widest <= LARGEST_SPREAD)
    known &= (log_length >= jnp.log(2.0) - 1e-12) & (log_length <= LARGEST_LOG_LENGTH)
    known &= jnp.abs(shift) <= LARGEST_SHIFT * jnp.maximum(widest, 1.0)
    known &= jnp.abs(relevant + rest - 1.0) < MASS_TOLERANCE
    averages = WeightAverages(relevant, relevant_square, others_square)
    return jax.tree.map(lambda value: jnp.where(known, value, jnp.nan), averages)
