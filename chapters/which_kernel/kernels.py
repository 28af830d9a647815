"""The kernels that the chapter compares, by the logarithm of each, and the regression task."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib.icl import LinearRegression


def exponential(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the logarithm of exp(x): softmax."""
    return jnp.asarray(score)


def raised_exponential(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the logarithm of 1 + exp(x)."""
    return jnp.logaddexp(score, 0.0)


def square(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the logarithm of (1 + x/2)²."""
    return 2 * jnp.log(jnp.abs(1 + score / 2))


def sigmoid(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the logarithm of 1/(1 + exp(-x)); 1 + tanh(x) is twice this kernel at 2x."""
    return jax.nn.log_sigmoid(score)


def softplus(score: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the logarithm of log(1 + exp(x)), which is x far to the left."""
    return jnp.where(score < -30.0, score, jnp.log(jax.nn.softplus(jnp.maximum(score, -30.0))))


# By the name in tables. The first two grow like exp; the others grow more slowly and have a negative curvature.
KERNELS = {
    "exp": exponential,
    "1 + exp": raised_exponential,
    "square": square,
    "softplus": softplus,
    "sigmoid": sigmoid,
}
SLOW = ("square", "softplus", "sigmoid")


def regression(dimension: int, noise_variance: float) -> LinearRegression:
    """Return isotropic regression whose noiseless labels have variance 1: τ_w² = 1/d."""
    return LinearRegression(jnp.eye(dimension), task_scale=dimension**-0.5, noise_std=noise_variance**0.5)
