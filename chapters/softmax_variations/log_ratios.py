"""Log-likelihood ratios `log g(l, χ*)` [D26] of a few tokens, one per row of scores and token l."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


@jax.jit
def spiked_log_ratio(scores: Float[Array, "n L"], snr: float | Float[Array, ""]) -> Float[Array, "n L"]:
    """Return `log g = √ν χ_l - ν/2`: the hidden token's score is shifted by √ν.

    Args:
      scores: scores of the tokens, shape (n, L).
      snr: signal strength ν, shape ().

    Returns:
      The log ratio of each token, shape (n, L).

    Source: [D26]. Transformations: jit, vmap, grad.
    """
    return jnp.sqrt(snr) * scores - 0.5 * snr


@jax.jit
def max_log_ratio(scores: Float[Array, "n L"], snr: float | Float[Array, ""]) -> Float[Array, "n L"]:
    """Return `log g` with `g = L softmax(νχ*)_l`: the larger a score, the likelier the token is the hidden one.

    Args:
      scores: scores of the tokens, shape (n, L).
      snr: signal strength ν, shape ().

    Returns:
      The log ratio of each token, shape (n, L).

    Source: [D26]. Transformations: jit, vmap, grad.
    """
    return jax.nn.log_softmax(snr * scores, axis=1) + jnp.log(scores.shape[1])


@jax.jit
def shared_log_ratio(
    scores: Float[Array, "n L"], snr: float | Float[Array, ""], correlation: float | Float[Array, ""]
) -> Float[Array, "n L"]:
    """Return `log g` of the spiked task with correlated scores: χ* is $N(√ν e_l, (1 - ρ)I + ρ11ᵀ)$.

    Args:
      scores: scores of the tokens, shape (n, L).
      snr: signal strength ν, shape ().
      correlation: correlation ρ of two scores, shape (), at least 0 and below 1.

    Returns:
      The log ratio of each token, shape (n, L).

    Source: derived here. Transformations: jit, vmap, grad.
    """
    length = scores.shape[1]
    log_det = (length - 1) * jnp.log1p(-correlation) + jnp.log1p((length - 1) * correlation)

    def square(centred):  # of Σ^{-1/2} centred, by the inverse of a multiple of I plus one of 11ᵀ
        total = jnp.sum(centred, axis=-1)
        return (jnp.sum(centred**2, axis=-1) - correlation * total**2 / (1.0 + (length - 1) * correlation)) / (
            1.0 - correlation
        )

    centred = scores[:, None, :] - jnp.sqrt(snr) * jnp.eye(length)
    return -0.5 * (square(centred) + log_det) + 0.5 * jnp.sum(scores**2, axis=1, keepdims=True)


@jax.jit
def narrow_log_ratio(scores: Float[Array, "n L"], width: float | Float[Array, ""]) -> Float[Array, "n L"]:
    """Return `log g` with `g = N(χ_l; 0, width²)/N(χ_l; 0, 1)`: the score of the hidden token is near zero.

    Args:
      scores: scores of the tokens, shape (n, L).
      width: standard deviation of the hidden score, shape (), between 0 and 1.

    Returns:
      The log ratio of each token, shape (n, L).

    Source: derived here. Transformations: jit, vmap, grad.
    """
    return -0.5 * scores**2 * (1.0 / width**2 - 1.0) - jnp.log(width)
