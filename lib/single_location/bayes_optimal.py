"""The best that any estimator can do with n = αD prompts: state evolution of Bayes-optimal inference [D26].

k* and v* have Gaussian priors, and the statistician knows the model. By the Nishimori identity an overlap with the
truth equals a squared norm, so two numbers, `q_k` and `q_v`, describe the posterior.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jaxtyping import Array, Float

from lib._checks import as_float, require_float64
from lib.single_location.quasi_random import quasi_normals
from lib.single_location.tasks import LocationTask, require_setting, static_length

POINTS, REPLICATES = 4096, 4
# From nothing known, the overlaps grow monotonically; this change of either counts as none.
TOLERANCE, STEPS = 1e-8, 3000
UNINFORMED = 1e-3


def bayes_optimal_risk(
    task: LocationTask, *, noise_std: float | Float[Array, ""], alpha: float | Float[Array, ""]
) -> Float[Array, ""]:
    """The least excess risk that n = αD prompts allow, in the limit D → ∞, for the spiked task [D26].

    `1 - q_v (1 - E_Bayes(L, ν q_k))`: what is known of v*, read at the token that what is known of k* points to. The
    fixed point is the one that a start from no knowledge reaches. Fixed quasi-random points, good to about 1e-3;
    a call takes a second or two. Needs float64. No formula for `Max` is known here, and none is guessed.
    """
    require_float64("bayes_optimal_risk", task.snr)
    if task.ambient:
        raise ValueError(
            f"`bayes_optimal_risk(task)` knows the spiked task only: for `{type(task).__name__}` the posterior of the "
            "hidden token is an integral of its own."
        )
    require_setting("bayes_optimal_risk", noise_std=noise_std, alpha=alpha)
    return _state_evolution(
        jnp.sqrt(task.snr),
        as_float(noise_std),
        as_float(alpha),
        jnp.asarray(np.concatenate(quasi_normals(2 * static_length(task) + 1, POINTS, REPLICATES))),
    )


@eqx.filter_jit
def _state_evolution(
    strength: Float[Array, ""],
    noise_std: Float[Array, ""],
    alpha: Float[Array, ""],
    points: Float[Array, "points coordinates"],
) -> Float[Array, ""]:
    scores, values, noise = (*jnp.split(points[:, :-1], 2, axis=1), points[:, -1])

    def known_scores(q_k):
        return strength * (jnp.sqrt(q_k) * scores).at[:, 0].add(strength * q_k)

    def step(carry):
        (q_k, q_v), _, steps = carry
        means = jnp.sqrt(q_v) * values
        variance = noise_std**2 + 1.0 - q_v
        errors = (means[:, 0] + jnp.sqrt(variance) * noise)[:, None] - means
        posterior = softmax(known_scores(q_k) - 0.5 * errors**2 / variance, axis=1)
        found = jnp.mean(posterior[:, 0])
        learned = jnp.mean(jnp.sum((posterior * errors) ** 2, axis=1)) / variance**2
        precision = alpha * jnp.stack([strength**2 * found, learned])
        overlaps = precision / (1.0 + precision)
        return overlaps, jnp.max(jnp.abs(overlaps - carry[0])), steps + 1

    def unsettled(carry):
        return (carry[1] > TOLERANCE) & (carry[2] < STEPS)

    start = (jnp.full(2, UNINFORMED), jnp.asarray(jnp.inf), jnp.asarray(0))
    (q_k, q_v), *_ = jax.lax.while_loop(unsettled, step, start)
    return 1.0 - q_v * jnp.mean(softmax(known_scores(q_k), axis=1)[:, 0])
