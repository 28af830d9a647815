"""Posterior of the hidden token where it is the one of the largest score and scores are known up to noise.

It serves the Bayes-optimal theory of the max task at ν = ∞; `lib.single_location.bayes_optimal` has the estimator. For
scores `χ_l ~ N(m_l, v)` token l is the largest with probability `∫ n(t) Π_{j≠l} Φ(t + (m_l - m_j)/√v) dt`, n and Φ the
standard normal density and distribution function. Derived here, see book/finite_samples.
"""

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, logsumexp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from lib._checks import public

# Standard deviations of the token's own noise, to either side of its mean.
LARGEST_DEVIATION = 9.0
# The smallest variance that counts as noise.
SMALLEST_VARIANCE = 1e-12


@public
def log_argmax_probability(means: Float[Array, " L"], variance: Float[Array, ""]) -> Float[Array, " L"]:
    """Return `log P(χ_l is the largest)` for independent `χ_l ~ N(means_l, variance)`, by one integral per token."""
    nodes, step = jnp.linspace(-LARGEST_DEVIATION, LARGEST_DEVIATION, node_count(means.size), retstep=True)
    leads = (means[:, None] - means[None, :]) / jnp.sqrt(jnp.maximum(variance, SMALLEST_VARIANCE))
    behind = log_ndtr(nodes + leads[..., None])
    others = jnp.where(jnp.eye(means.size, dtype=bool)[..., None], 0.0, behind)
    return logsumexp(norm.logpdf(nodes) + jnp.sum(others, axis=1), axis=1) + jnp.log(step)


def node_count(tokens: int) -> int:
    """Return the number of nodes that the product of `tokens` - 1 distribution functions needs."""
    return 37 if tokens <= 3 else 73 if tokens <= 30 else 145


@public
def log_evidence(
    means: Float[Array, " L"], variance: Float[Array, ""], errors: Float[Array, " L"], error_variance: Float[Array, ""]
) -> Float[Array, ""]:
    """Return `log Σ_l P(χ_l is the largest) e^{-errors_l²/(2 error_variance)}`, the log evidence of one label."""
    return logsumexp(log_argmax_probability(means, variance) - 0.5 * errors**2 / error_variance)


@public
def squared_evidence_gradients(
    means: Float[Array, " L"], variance: Float[Array, ""], errors: Float[Array, " L"], error_variance: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return `|∂ log Z/∂means|²` and `|∂ log Z/∂errors|²` of the evidence Z: a prompt's information on k* and v*."""
    by_score, by_value = jax.grad(log_evidence, argnums=(0, 2))(means, variance, errors, error_variance)
    return jnp.sum(by_score**2), jnp.sum(by_value**2)
