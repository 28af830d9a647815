"""Approximate message passing for the hidden directions of the spiked task, with the priors `k*, v* ~ N(0, I)`.

The state evolution of `lib.single_location.bayes_optimal` describes this algorithm. Within each prompt tokens are
weighted by how well they explain the label, `p_l ∝ exp(√ν ω_k - (y - ω_v)²/2T)`; between prompts only two vectors and
two variances are kept. The result predicts as a softmax head of key `√ν k̂` and value `v̂`: given the data, with D
large, the posterior of the hidden token of a fresh prompt is `softmax(√ν Xk̂/√D)`, so the Bayes-optimal predictor is
softmax attention, trained differently (derived here). The uncertainty of k* adds a Gaussian term to the exponent of
every token. Its variance, $ν V_k$, need not be small; it is the same for all tokens, and so the normalisation removes
it.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from lib.single_location.activations import softmax
from lib.single_location.tasks import Head, LocationTask, Overlaps


class Beliefs(eqx.Module):
    """Posterior means of k* and v*, and the variance per coordinate that the algorithm attributes to each.

    Attributes:
      mean: the means, a head.
      variance: variances of k* and of v*.
    """

    mean: Head
    variance: Float[Array, "*iterations 2"]


class InferenceTrajectory(eqx.Module):
    """Quality of the beliefs after each iteration.

    Attributes:
      overlaps: overlaps of the means with the truth and with each other.
      risk: excess risk of the softmax head of key `√ν k̂` and value `v̂`.
      estimated: the algorithm's own estimates of $q_k$ and $q_v$, which are 1 minus its variances.
    """

    overlaps: Overlaps
    risk: Float[Array, " iterations"]
    estimated: Float[Array, "iterations 2"]


def message_passing(
    task: LocationTask,
    prompts: Any,
    start: Beliefs,
    *,
    noise_std: float | Float[Array, ""],
    iterations: int,
    damping: float = 0.0,
    stiffness: float | Float[Array, ""] = 1.0,
) -> Beliefs:
    """Return the beliefs after each of `iterations` rounds over all prompts.

    Undamped, overlaps follow `state_evolution`; where the key stays poor, some damping (0.3) is needed to converge.
    One step is not textbook: hidden tokens are shifted along k*, so the textbook divides the update of the value by
    too small a precision there, and under a strong spike the value diverges. Along the key,
    `α ν E Σ p_l [p_l (y - ω_v)/T]²` times `stiffness` is added to the precision. It is of the order of the missing
    precision, not equal to it (box `pull-along-the-spike`). Fixed points and the evolution of `q_k`, `q_v` do not
    depend on it (derived here).

    Args:
      task: the spiked task.
      prompts: the training prompts of `task.draw`, tokens of shape (n, L, D).
      start: the first beliefs.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      iterations: number of rounds, at least 1; each costs two products with the tokens.
      damping: share of the old beliefs in the new ones, at least 0 and below 1.
      stiffness: multiple of the additional precision along the key; 0 is the textbook's algorithm.

    Returns:
      Beliefs, whose leaves have a leading axis of `iterations`.

    Source: approximate message passing with the state evolution of [D26]; the step along the spike is derived here.
    """
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
        # two rows times a matrix: XLA would transpose all tokens for the product the other way round
        pulled = (pull.reshape(-1, 2).T @ tokens.reshape(-1, dimension)).T
        new = (pulled / size + means * gain) * new_variance
        spike = stiffness * task.snr * jnp.sum(p * pull[..., 1] ** 2) / dimension * new_variance[1]
        new = new.at[:, 1].add(-_along(new[:, 0], new[:, 1] - means[:, 1]) * spike / (1.0 + spike))
        means = damping * means + (1.0 - damping) * new
        variance = damping * variance + (1.0 - damping) * new_variance
        return (means, variance, pull), Beliefs(Head(means[:, 0], means[:, 1]), variance)

    means = jnp.stack([start.mean.key, start.mean.value], axis=1)
    begin = (means, start.variance, jnp.zeros((*tokens.shape[:2], 2)))
    return jax.lax.scan(iterate, begin, None, length=iterations)[1]


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
    """Return the overlaps and risks of message passing on `round(alpha * dimension)` fresh prompts.

    The prompts are those of `simulate_erm` with the same key. Memory: alpha·L·D² numbers. The risks of the
    iterations are computed one after another.

    Args:
      task: the spiked task with L ≤ 500.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.
      dimension: dimension D.
      start_overlap: overlap of the start with the truth: small without knowledge, near 1 with it.
      iterations: number of rounds, at least 1.
      damping: share of the old beliefs in the new ones, at least 0 and below 1.
      stiffness: multiple of the additional precision along the key; see `message_passing`.
      key: random key.

    Returns:
      The trajectory, each leaf with a leading axis of `iterations`.

    Source: derived here, after [D26].
    """
    truth_key, prompt_key, start_key = jr.split(key, 3)
    truth = Head.orthogonal(dimension, key=truth_key)
    prompts = task.draw(truth, round(alpha * dimension), noise_std=noise_std, key=prompt_key)
    start = draw_beliefs(truth, start_overlap, key=start_key)
    options = {"iterations": iterations, "damping": damping, "stiffness": stiffness}
    beliefs = message_passing(task, prompts, start, noise_std=noise_std, **options)

    def evaluate(mean):
        overlaps = mean.overlaps(truth)
        scaled = Head(jnp.sqrt(task.snr) * mean.key, mean.value).overlaps(truth)
        return overlaps, task.fresh_risk(softmax, scaled)

    overlaps, risk = jax.lax.map(evaluate, beliefs.mean)
    return InferenceTrajectory(overlaps, risk, 1.0 - beliefs.variance)


def draw_beliefs(truth: Head, overlap: float | Float[Array, ""], *, key: PRNGKeyArray) -> Beliefs:
    """Return posterior means whose overlap with the truth, and squared norm over D, is `overlap`; independent of all
    prompts.

    Args:
      truth: the hidden directions, each of squared norm D.
      overlap: the overlap, shape (), between 0 and 1.
      key: random key.

    Returns:
      Beliefs with variances `1 - overlap`.
    """
    noise = jnp.sqrt(overlap * (1.0 - overlap)) * jr.normal(key, (2, truth.key.size))
    mean = Head(overlap * truth.key + noise[0], overlap * truth.value + noise[1])
    return Beliefs(mean, jnp.full(2, 1.0 - overlap))


def _along(direction: Float[Array, " D"], vector: Float[Array, " D"]) -> Float[Array, " D"]:
    """The part of `vector` along `direction`; none where that is zero."""
    return direction * (direction @ vector) / jnp.maximum(direction @ direction, jnp.finfo(direction.dtype).tiny)
