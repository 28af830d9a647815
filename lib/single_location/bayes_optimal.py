"""The best that any estimator can do with n = αD prompts: the end of state evolution [D26].

k* and v* have Gaussian priors, and the estimator knows the model. By the Nishimori identity an overlap with the truth
equals a squared norm, so two numbers, `q_k` and `q_v`, describe the posterior. One pass of the evolution is what one
iteration of message passing does to them in high dimension.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import softmax
from jaxtyping import Array, Float

from lib._checks import as_float, public, require_float64
from lib._quasi_random import quasi_normals
from lib.batching import map_batched
from lib.single_location._argmax import log_argmax_probability, node_count, squared_evidence_gradients
from lib.single_location._posterior import spiked_bayes_risk
from lib.single_location.tasks import LocationTask, _require_setting, _static_length

# Quasi-random points of one set, and number of sets.
_POINTS, _SETS = 4096, 4
# Smallest signal strength: at 0 a square root has no finite slope.
_SMALLEST_SIGNAL = 1e-300
# The evolution ends where no overlap changes by more than this, or after so many passes.
_CHANGE_TOLERANCE, _LARGEST_STEPS = 1e-8, 3000
# Overlap of a start without knowledge.
_UNINFORMED = 1e-3


class _PromptAverage(eqx.Module):
    """Averages over prompts that the evolution needs, on fixed standard normals; overlaps are $(q_k, q_v)$.

    Attributes:
      noise_std: standard deviation of the label noise.
      alpha: prompts per dimension.
      scores: normals of the scores' posterior means.
      values: normals of the values' posterior means.
      noise: normals of the label.
    """

    noise_std: Float[Array, ""]
    alpha: Float[Array, ""]
    scores: Float[Array, "points L"]
    values: Float[Array, "points L"]
    noise: Float[Array, " points"]

    @abc.abstractmethod
    def precision_gain(self, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Return what all prompts add to the precision of the posteriors of k* and v*."""

    @abc.abstractmethod
    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return the excess risk of the predictor with these overlaps on a fresh prompt."""

    def residuals(self, q_v: Float[Array, ""]) -> tuple[Float[Array, "points L"], Float[Array, ""]]:
        """Return `y - ω_v` of every token, and the variance `T = Δ² + 1 - q_v` of that of the hidden token."""
        means = jnp.sqrt(q_v) * self.values
        variance = self.noise_std**2 + 1.0 - q_v
        return (means[:, 0] + jnp.sqrt(variance) * self.noise)[:, None] - means, variance


class _SpikedPromptAverage(_PromptAverage):
    """Averages for the spiked task [D26]; `strength` is √ν."""

    strength: Float[Array, ""]

    def precision_gain(self, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Return the gain; by the Nishimori identity that of k* is the mean posterior weight of the hidden token."""
        q_k, q_v = overlaps
        residuals, variance = self.residuals(q_v)
        # √ν ω_k, the scores by the estimate of k*, the hidden token first
        scores = self.strength * (jnp.sqrt(q_k) * self.scores).at[:, 0].add(self.strength * q_k)
        posterior = softmax(scores - 0.5 * residuals**2 / variance, axis=1)
        hidden_weight = jnp.mean(posterior[:, 0])
        squared_residual = jnp.mean(jnp.sum((posterior * residuals) ** 2, axis=1)) / variance**2
        return self.alpha * jnp.stack([self.strength**2 * hidden_weight, squared_residual])

    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return `1 - q_v (1 - E_Bayes(ν q_k))` by the quadrature of the Bayes risk."""
        q_k, q_v = overlaps
        signal = jnp.maximum(self.strength**2 * q_k, _SMALLEST_SIGNAL)
        return 1.0 - q_v + q_v * spiked_bayes_risk(jnp.asarray(float(self.scores.shape[1])), signal)


class _MaxPromptAverage(_PromptAverage):
    """Averages for the max task at ν = ∞, derived here, see book/finite_samples.

    The hidden token may be the first, by symmetry; a prompt then counts L times the probability that it is.
    """

    def precision_gain(self, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Return mean squared gradients of the log evidence in the means of scores and values."""
        q_k, q_v = overlaps
        residuals, variance = self.residuals(q_v)
        gains = self._of_each_prompt(
            lambda row: squared_evidence_gradients(row[0], 1.0 - q_k, row[1], variance),
            (jnp.sqrt(q_k) * self.scores, residuals),
        )
        hidden_probability = self.scores.shape[1] * self.argmax_probabilities(q_k)[:, 0]
        return self.alpha * jnp.stack([jnp.mean(hidden_probability * gain) for gain in gains])

    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return `1 - q_v E Σ P²`, P the probability of a token to have the largest score."""
        q_k, q_v = overlaps
        return 1.0 - q_v * jnp.mean(jnp.sum(self.argmax_probabilities(q_k) ** 2, axis=1))

    def argmax_probabilities(self, q_k: Float[Array, ""]) -> Float[Array, "points L"]:
        """Return the posterior probability of each token to have the largest score."""
        return self._of_each_prompt(
            lambda means: jnp.exp(log_argmax_probability(means, 1.0 - q_k)), jnp.sqrt(q_k) * self.scores
        )

    def _of_each_prompt(self, function: Callable, rows: Any) -> Any:
        """Return `function` of the rows, a batch at a time: a row takes L² integrands."""
        tokens = self.scores.shape[1]
        return map_batched(function, rows, size=tokens**2 * node_count(tokens))


@public
def bayes_optimal_risk(
    task: LocationTask, *, noise_std: float | Float[Array, ""], alpha: float | Float[Array, ""]
) -> Float[Array, ""]:
    """Return the least excess risk that n = αD prompts allow in the limit D → ∞.

    `1 - q_v (1 - E_Bayes)`: the estimate of v* reads the token to which the estimate of k* points. The overlaps are
    those of the fixed point that a start without knowledge reaches.

    Args:
      task: `Spiked` with L ≤ 500 and ν ≤ 2500, or `Max` with L ≤ 500 and ν = ∞.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.

    Returns:
      The risk, shape (). The overlaps are averages over fixed quasi-random points, so that the risk has an absolute
      error of about 1e-3, for `Max` 2e-3. Given the overlaps the spiked risk is the quadrature of `bayes_risk`, so that
      it is never below the Bayes risk of the task. A call takes a second or two. For `Max` it takes ten seconds
      with two tokens, and the time grows like L².

    Raises:
      ValueError: if float64 is off, for `Max` at finite ν, or outside the domain of a setting.

    Source: [D26]; `Max` is derived here (book/finite_samples). Transformations: none of `task`, whose length must be
    concrete.
    """
    owner = "bayes_optimal_risk"
    require_float64(owner, task.snr)
    if task.ambient and not np.isinf(task.snr):
        raise ValueError(
            f"`{owner}({type(task).__name__}(length, snr))` is known for snr = inf only, where the token of the "
            f"largest score is the hidden one. Got snr = {task.snr}."
        )
    _require_setting(owner, noise_std=noise_std, alpha=alpha)
    return _risk_at_end(_prompt_average(task, as_float(noise_std), as_float(alpha)))


def _prompt_average(task: LocationTask, noise_std: Float[Array, ""], alpha: Float[Array, ""]) -> _PromptAverage:
    normals = np.concatenate(quasi_normals(2 * _static_length(task) + 1, _POINTS, range(_SETS)))
    scores, values = np.split(normals[:, :-1], 2, axis=1)
    drawn = map(jnp.asarray, (noise_std, alpha, scores, values, normals[:, -1]))
    return _MaxPromptAverage(*drawn) if task.ambient else _SpikedPromptAverage(*drawn, strength=jnp.sqrt(task.snr))


def _step(average: _PromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
    """One pass: with what prompts teach at these overlaps, the overlaps are these."""
    precision = average.precision_gain(overlaps)
    return precision / (1.0 + precision)


@eqx.filter_jit
def _risk_at_end(average: _PromptAverage) -> Float[Array, ""]:
    def step(carry):
        overlaps, _, steps = carry
        new = _step(average, overlaps)
        return new, jnp.max(jnp.abs(new - overlaps)), steps + 1

    def unsettled(carry):
        return (carry[1] > _CHANGE_TOLERANCE) & (carry[2] < _LARGEST_STEPS)

    start = (jnp.full(2, _UNINFORMED), jnp.asarray(jnp.inf), jnp.asarray(0))
    return average.risk(jax.lax.while_loop(unsettled, step, start)[0])
