"""The algorithm that the state evolution describes: message passing for the hidden directions of the spiked task.

Approximate message passing with the priors `k*, v* ~ N(0, I)`. Within each prompt tokens are weighed by how well they
explain the prompt, `p_l ∝ exp(√ν ω_k - (y - ω_v)²/2T)`; between prompts only two vectors and two variances are kept.
What is learned answers as a softmax head of key `√ν k̂` and value `v̂`: given the data, with D large, the posterior of
the hidden token of a fresh prompt is `softmax(√ν Xk̂/√D)`, so the Bayes-optimal predictor is softmax attention, trained
otherwise (derived here). What the data leave unknown of k* adds a Gaussian term to the exponent of every token. Its
variance, ν V_k, need not be small; it is the same for all tokens, and so the normalisation removes it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import is_concrete, require_count, require_float64
from lib.single_location.activations import softmax
from lib.single_location.bayes_optimal import require_spiked, require_start_overlap
from lib.single_location.erm import TrainingSet, draw_prompts, draw_truth, fresh_risk, overlaps_of
from lib.single_location.overlaps import Head, Overlaps
from lib.single_location.tasks import LocationTask, require_setting


class Beliefs(eqx.Module):
    """Posterior means of k* and v*, and the variance per coordinate that is claimed of each."""

    mean: Head
    variance: Float[Array, "*iterations 2"]


class InferenceTrajectory(eqx.Module):
    """What beliefs are worth, one entry an iteration: overlaps of the means with the truth, and the excess risk.

    The risk is that of the softmax head of key `√ν k̂` and value `v̂`, a function of its seven overlaps. `estimated` is
    what the algorithm, which does not know the truth, says that `q_k` and `q_v` are: 1 less its variances.
    """

    overlaps: Overlaps
    risk: Float[Array, " iterations"]
    estimated: Float[Array, "iterations 2"]


def message_passing(
    task: LocationTask,
    prompts: TrainingSet,
    start: Beliefs,
    *,
    noise_std: float | Float[Array, ""],
    iterations: int,
    damping: float = 0.0,
    stiffness: float | Float[Array, ""] = 1.0,
) -> Beliefs:
    """Beliefs after each of `iterations` rounds over all prompts; an iteration costs two products with the tokens.

    `damping` is the share of the old beliefs in the new ones. Undamped, overlaps follow `state_evolution`; where the
    key stays poor, some damping (0.3) is needed to converge. One step is not textbook: hidden tokens are shifted along
    k*, so the textbook divides the update of the value by too small a precision there, and under a strong spike the
    value runs off. Along the key, `α ν E Σ p_l [p_l (y - ω_v)/T]²` times `stiffness` is added to the precision, 0 being
    the textbook's. It is of the order of what is lacking, not equal to it (box `pull-along-the-spike`). Fixed points
    and the evolution of `q_k`, `q_v` do not depend on it (derived here).
    """
    count = require_count("message_passing", "iterations", iterations, "each is one round over the prompts.")
    tokens, n, dimension = prompts.tokens, prompts.labels.size, start.mean.key.size
    strength, size = jnp.sqrt(task.snr), jnp.sqrt(dimension)
    # tokens of a spiked prompt are longer along k*: that much says the prior of k, whatever the data
    prior = jnp.stack([1.0 + n / dimension * task.snr, jnp.ones(())])

    def iterate(carry, _):
        means, variance, pull = carry
        omega = tokens @ means / size - pull * variance
        residual_variance = noise_std**2 + variance[1]
        residuals = prompts.labels[:, None] - omega[..., 1]
        p = jax.nn.softmax(strength * omega[..., 0] - 0.5 * residuals**2 / residual_variance, axis=1)
        pull = jnp.stack([strength * p, p * residuals / residual_variance], axis=-1)
        gain = jnp.stack([-task.snr * jnp.sum(p * (1.0 - p)), jnp.sum(pull[..., 1] ** 2)]) / dimension
        new_variance = 1.0 / (prior + gain)
        new = (jnp.einsum("nld,nlc->dc", tokens, pull) / size + means * gain) * new_variance
        spike = stiffness * task.snr * jnp.sum(p * pull[..., 1] ** 2) / dimension * new_variance[1]
        new = new.at[:, 1].add(-_along(new[:, 0], new[:, 1] - means[:, 1]) * spike / (1.0 + spike))
        means = damping * means + (1.0 - damping) * new
        variance = damping * variance + (1.0 - damping) * new_variance
        return (means, variance, pull), Beliefs(Head(means[:, 0], means[:, 1]), variance)

    means = jnp.stack([start.mean.key, start.mean.value], axis=1)
    begin = (means, start.variance, jnp.zeros((*tokens.shape[:2], 2)))
    return jax.lax.scan(iterate, begin, None, length=count)[1]


def simulate_message_passing(
    task: LocationTask,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float,
    dimension: int,
    start_overlap: float | Float[Array, ""],
    iterations: int,
    damping: float = 0.0,
    stiffness: float | Float[Array, ""] = 1.0,
    key: PRNGKeyArray,
) -> InferenceTrajectory:
    """Message passing on `round(alpha * dimension)` fresh prompts, those of `simulate_erm` with the same key.

    `start_overlap` is the overlap of the start with the truth: small where nothing is known (`UNINFORMED`), near 1 where the
    truth was told (`INFORMED`). Memory: alpha·L·D² numbers. Needs float64. Spiked task only.
    """
    require_float64("simulate_message_passing", task.snr)
    require_spiked("simulate_message_passing", task)
    require_setting("simulate_message_passing", noise_std=noise_std, alpha=alpha)
    require_start_overlap("simulate_message_passing", start_overlap)
    if is_concrete(damping) and not 0 <= damping < 1:
        raise ValueError(
            "`simulate_message_passing(damping=...)` must be at least 0 and below 1: it is the share of old beliefs, "
            f"and with 1 nothing is ever learned. Got {damping}."
        )
    truth_key, prompt_key, start_key = jr.split(key, 3)
    truth = draw_truth(dimension, key=truth_key)
    prompts = draw_prompts(task, truth, round(alpha * dimension), noise_std=noise_std, key=prompt_key)
    start = draw_beliefs(truth, start_overlap, key=start_key)
    options = {"iterations": iterations, "damping": damping, "stiffness": stiffness}
    beliefs = message_passing(task, prompts, start, noise_std=noise_std, **options)

    def evaluate(mean):
        overlaps = overlaps_of(mean, truth)
        scaled = overlaps_of(Head(jnp.sqrt(task.snr) * mean.key, mean.value), truth)
        return overlaps, fresh_risk(task, softmax, scaled)

    overlaps, risk = jax.lax.map(evaluate, beliefs.mean)
    return InferenceTrajectory(overlaps, risk, 1.0 - beliefs.variance)


def draw_beliefs(truth: Head, start_overlap: float | Float[Array, ""], *, key: PRNGKeyArray) -> Beliefs:
    """Posterior means whose overlap with the truth, and squared norm, are `start_overlap`; they know nothing of the prompts."""
    noise = jnp.sqrt(start_overlap * (1.0 - start_overlap)) * jr.normal(key, (2, truth.key.size))
    mean = Head(start_overlap * truth.key + noise[0], start_overlap * truth.value + noise[1])
    return Beliefs(mean, jnp.full(2, 1.0 - start_overlap))


def _along(direction: Float[Array, " D"], vector: Float[Array, " D"]) -> Float[Array, " D"]:
    """The part of `vector` along `direction`; none where that is zero."""
    return direction * (direction @ vector) / jnp.maximum(direction @ direction, jnp.finfo(direction.dtype).tiny)
