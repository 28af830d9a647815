"""The best that any estimator can do with n = αD prompts: state evolution of Bayes-optimal inference [D26].

k* and v* have Gaussian priors, and the estimator knows the model. By the Nishimori identity an overlap with the truth
equals a squared norm, so two numbers, `q_k` and `q_v`, describe the posterior. One pass of the evolution is what one
iteration of message passing does to them in high dimension. Where two starts end differently, the end with the larger
free entropy is that of the best estimator.
"""

import abc
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp, softmax
from jaxtyping import Array, Float

from lib._checks import as_float, is_concrete, public, require_count, require_float64
from lib.single_location import _posterior
from lib.single_location._argmax import log_argmax_probability, squared_evidence_gradients
from lib.single_location._quasi_random import quasi_normals
from lib.single_location.tasks import LocationTask, _require_setting, _static_length

_POINTS, _REPLICATES = 4096, 4
# Smallest signal strength: at 0 a square root has no finite slope.
_SMALLEST_SIGNAL = 1e-300
# Sets of points of `fixed_point`, whose scatter is its standard error: itself uncertain by 40 % with four sets, and by
# 18 % with sixteen.
_SETS = 16
# The evolution ends where no overlap changes by more than this, or after so many passes.
_CHANGE_TOLERANCE, _LARGEST_STEPS = 1e-8, 3000
# Where a pass changes both overlaps by less, Newton's method replaces plain passes.
_NEWTON_THRESHOLD = 1e-3
# Overlap of a start without knowledge.
_UNINFORMED = 1e-3


class _Evolution(eqx.Module):
    """Overlaps of posterior means with k* and v* and the excess risk of the predictor that uses them, pass by pass.

    Where only the end was computed, each is a single number.

    Attributes:
      q_k: overlap with k*.
      q_v: overlap with v*.
      risk: excess risk.
    """

    q_k: Float[Array, "*passes"]
    q_v: Float[Array, "*passes"]
    risk: Float[Array, "*passes"]


class _FixedPoint(eqx.Module):
    """The end of the evolution from one start, and the free entropy there, per dimension.

    Of several fixed points the one of the largest free entropy is that of the Bayes-optimal estimator.

    Attributes:
      end: overlaps and risk at the end.
      free_entropy: the free entropy.
      std_error: standard error of the risk: the scatter, to first order, of the ends that the `SETS` independently
        scrambled
        sets of points would have, divided by √`SETS`. It grows with the time that the evolution needs to reach an end.
      free_entropies: those of the single sets at this end. All ends are found on the same sets, so the scatter of
        differences is the error with which two ends are compared.
    """

    end: _Evolution
    free_entropy: Float[Array, ""]
    std_error: Float[Array, ""]
    free_entropies: Float[Array, " sets"]


class _PromptAverage(eqx.Module):
    """Averages over prompts that the evolution needs, on fixed standard normals.

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
        """Return what all prompts add to the precision of the posteriors of k* and v*.

        Args:
          overlaps: $q_k$ and $q_v$, shape (2,).

        Returns:
          Two precisions, shape (2,).

        Transformations: jit, vmap, grad.
        """

    @abc.abstractmethod
    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return the excess risk of the predictor with these overlaps on a fresh prompt.

        Args:
          overlaps: $q_k$ and $q_v$, shape (2,).

        Returns:
          The risk, shape ().

        Transformations: jit, vmap, grad.
        """

    @public
    def residuals(self, q_v: Float[Array, ""]) -> tuple[Float[Array, "points L"], Float[Array, ""]]:
        """Return `y - ω_v` of every token, and the variance `T = Δ² + 1 - q_v` of that of the hidden token.

        Args:
          q_v: overlap with v*, shape ().

        Returns:
          Residuals, shape (points, L), and their variance, shape ().

        Transformations: jit, vmap, grad.
        """
        means = jnp.sqrt(q_v) * self.values
        variance = self.noise_std**2 + 1.0 - q_v
        return (means[:, 0] + jnp.sqrt(variance) * self.noise)[:, None] - means, variance


class _SpikedPromptAverage(_PromptAverage):
    """Averages for the spiked task [D26].

    Attributes:
      strength: √ν.
    """

    strength: Float[Array, ""]

    @public
    def precision_gain(self, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Return the gain; by the Nishimori identity that of k* is the mean posterior weight of the hidden token."""
        q_k, q_v = overlaps
        residuals, variance = self.residuals(q_v)
        _posterior = softmax(self.estimated_scores(q_k) - 0.5 * residuals**2 / variance, axis=1)
        hidden_weight = jnp.mean(_posterior[:, 0])
        squared_residual = jnp.mean(jnp.sum((_posterior * residuals) ** 2, axis=1)) / variance**2
        return self.alpha * jnp.stack([self.strength**2 * hidden_weight, squared_residual])

    @public
    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return `1 - q_v (1 - E_Bayes(ν q_k))` by the quadrature of the Bayes risk."""
        q_k, q_v = overlaps
        signal = jnp.maximum(self.strength**2 * q_k, _SMALLEST_SIGNAL)
        bayes = _posterior.spiked_bayes_risk(jnp.asarray(float(self.scores.shape[1])), signal)
        return 1.0 - q_v + q_v * bayes

    @public
    def estimated_scores(self, q_k: Float[Array, ""]) -> Float[Array, "points L"]:
        """Return `√ν ω_k`, the scores by the estimate of k*, the hidden token first.

        Args:
          q_k: overlap with k*, shape ().

        Returns:
          The scores, shape (points, L).

        Transformations: jit, vmap, grad.
        """
        return self.strength * (jnp.sqrt(q_k) * self.scores).at[:, 0].add(self.strength * q_k)


class _MaxPromptAverage(_PromptAverage):
    """Averages for the max task at ν = ∞, derived here, see book/finite_samples.

    The hidden token may be the first, by symmetry; a prompt then counts L times the probability that it is.
    """

    @public
    def precision_gain(self, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Return mean squared gradients of the log evidence in the means of scores and values."""
        q_k, q_v = overlaps
        residuals, variance = self.residuals(q_v)
        gains = jax.vmap(squared_evidence_gradients, (0, None, 0, None))(
            jnp.sqrt(q_k) * self.scores, 1.0 - q_k, residuals, variance
        )
        hidden_probability = self.scores.shape[1] * self.argmax_probabilities(q_k)[:, 0]
        return self.alpha * jnp.stack([jnp.mean(hidden_probability * gain) for gain in gains])

    @public
    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return `1 - q_v E Σ P²`, P the probability of a token to have the largest score."""
        q_k, q_v = overlaps
        return 1.0 - q_v * jnp.mean(jnp.sum(self.argmax_probabilities(q_k) ** 2, axis=1))

    @public
    def argmax_probabilities(self, q_k: Float[Array, ""]) -> Float[Array, "points L"]:
        """Return the posterior probability of each token to have the largest score.

        Args:
          q_k: overlap with k*, shape ().

        Returns:
          The probabilities, shape (points, L).

        Transformations: jit, vmap, grad.
        """
        return jnp.exp(jax.vmap(log_argmax_probability, (0, None))(jnp.sqrt(q_k) * self.scores, 1.0 - q_k))


@public
def bayes_optimal_risk(
    task: LocationTask, *, noise_std: float | Float[Array, ""], alpha: float | Float[Array, ""]
) -> Float[Array, ""]:
    """Return the least excess risk that n = αD prompts allow in the limit D → ∞.

    `1 - q_v (1 - E_Bayes)`: the estimate of v* reads the token to which the estimate of k* points. The overlaps are
    those
    of the fixed point that a start without knowledge reaches.

    Args:
      task: `Spiked` with L ≤ 500 and ν ≤ 2500, or `Max` with L ≤ 500 and ν = ∞.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.

    Returns:
      The risk, shape (). The overlaps are averages over fixed quasi-random points, so that the risk has an absolute
      error of about 1e-3, for `Max` 2e-3; for spiked tasks `fixed_point` reports a standard error. Given the overlaps
      the spiked risk is the quadrature of `bayes_risk`, so that it is never below the Bayes risk of the task. A call
      takes a second or two, for `Max` twenty.

    Raises:
      ValueError: if float64 is off, for `Max` at finite ν, or outside the domain of a setting.

    Source: [D26]; `Max` is derived here (book/finite_samples). Transformations: none of `task`, whose length must be
    concrete.
    """
    average = _prompt_average("bayes_optimal_risk", task, noise_std, alpha)
    return _risk(average, _end_of_passes(average, jnp.asarray(_UNINFORMED)))


@public
def state_evolution(
    task: LocationTask,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float | Float[Array, ""],
    start_overlap: float | Float[Array, ""],
    iterations: int,
) -> _Evolution:
    """Return the first passes of the evolution of $(q_k, q_v)$ from equal overlaps, the start itself not included.

    Iteration t of undamped `message_passing` has these overlaps in the limit D → ∞ (heuristic, as all of message
    passing
    with an unknown key is).

    Args:
      task: a spiked task with L ≤ 500.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.
      start_overlap: overlap with k* and with v* at the start, between 0 and 1.
      iterations: number of passes, at least 1.

    Returns:
      Overlaps and risks, each of shape (iterations,), averages over the quasi-random points of `bayes_optimal_risk`.

    Raises:
      ValueError: if float64 is off, for `Max`, or outside the domain of a setting.

    Source: derived here. Transformations: none of `task`, whose length must be concrete.
    """
    count = require_count("state_evolution", "iterations", iterations, "each is one pass of the evolution.")
    _require_start_overlap("state_evolution", start_overlap)
    return _passes(_spiked_prompt_average("state_evolution", task, noise_std, alpha), as_float(start_overlap), count)


@public
def fixed_point(
    task: LocationTask,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float | Float[Array, ""],
    start_overlap: float | Float[Array, ""],
    points: int = _POINTS,
) -> _FixedPoint:
    """Return the end of the evolution from overlaps `start_overlap`: small without knowledge, near 1 with it.

    Where both ends differ and the informed one has the larger free entropy, the phase is hard: a better estimator
    exists
    than message passing finds.

    Args:
      task: a spiked task with L ≤ 500.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.
      start_overlap: overlap with k* and with v* at the start, between 0 and 1.
      points: size $2^k$ of one set of quasi-random points; there are `SETS` sets. The standard error falls like
        `points^-0.75` or a little faster, and the time grows like points.

    Returns:
      `.end` with its overlaps `.q_k`, `.q_v` and its `.risk`; `.free_entropy` there, the mean of `.free_entropies` over
      the sets of points; and `.std_error`, that of the risk. The error does not cover a wrong end: very near a
      sample ratio at which the end vanishes, other points could find the other end.

    Raises:
      ValueError: if float64 is off, for `Max`, or outside the domain of a setting.

    Source: [D26]; the free entropy is derived here. Transformations: none of `task`, whose length must be concrete.
    """
    _require_start_overlap("fixed_point", start_overlap)
    average = _spiked_prompt_average("fixed_point", task, noise_std, alpha, points=points, sets=_SETS)
    overlaps = _end_by_newton(average, as_float(start_overlap))
    end = _Evolution(overlaps[0], overlaps[1], _risk(average, overlaps))
    entropies = _entropies(average, overlaps).reshape(_SETS, points).mean(axis=1)
    return _FixedPoint(end, entropies.mean(), _std_error(average, overlaps), entropies)


@public
def _require_start_overlap(owner: str, start_overlap: float | Float[Array, ""]) -> None:
    """Raise `ValueError` unless a concrete overlap of a start is between 0 and 1.

    Args:
      owner: name of the calling function, for the message.
      start_overlap: the overlap.

    Raises:
      ValueError: if it is not.
    """
    if is_concrete(start_overlap) and not 0 < start_overlap < 1:
        raise ValueError(
            f"`{owner}(start_overlap=...)` must be between 0 and 1: it is the overlap of a posterior mean with the "
            f"truth, 0 where nothing is known and 1 where everything is. Got {start_overlap}."
        )


def _require_spiked(owner: str, task: LocationTask) -> None:
    """Raise `ValueError` for tasks whose hidden token has another posterior than a softmax of scores and residuals.

    Args:
      owner: name of the calling function, for the message.
      task: the task.

    Raises:
      ValueError: for `Max`.
    """
    if task.ambient:
        raise ValueError(
            f"`{owner}(task)` supports the spiked task only: for `{type(task).__name__}` the posterior of the "
            "relevant token needs another integral."
        )


def _spiked_prompt_average(
    owner: str, task: LocationTask, noise_std, alpha, *, points: int = _POINTS, sets: int = _REPLICATES
) -> _SpikedPromptAverage:
    _require_spiked(owner, task)
    average = _prompt_average(owner, task, noise_std, alpha, points=points, sets=sets)
    assert isinstance(average, _SpikedPromptAverage)
    return average


def _prompt_average(
    owner: str, task: LocationTask, noise_std, alpha, *, points: int = _POINTS, sets: int = _REPLICATES
) -> _PromptAverage:
    require_float64(owner, task.snr)
    if task.ambient and not np.isinf(task.snr):
        raise ValueError(
            f"`{owner}({type(task).__name__}(length, snr))` is known for snr = inf only, where the token of the "
            f"largest score is the hidden one. Got snr = {task.snr}."
        )
    _require_setting(owner, noise_std=noise_std, alpha=alpha)
    normals = np.concatenate(quasi_normals(2 * _static_length(task) + 1, points, sets))
    scores, values = np.split(normals[:, :-1], 2, axis=1)
    drawn = map(jnp.asarray, (scores, values, normals[:, -1]))
    if task.ambient:
        return _MaxPromptAverage(as_float(noise_std), as_float(alpha), *drawn)
    return _SpikedPromptAverage(as_float(noise_std), as_float(alpha), *drawn, strength=jnp.sqrt(task.snr))


def _step(average: _PromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
    """One pass: with what prompts teach at these overlaps, the overlaps are these."""
    precision = average.precision_gain(overlaps)
    return precision / (1.0 + precision)


@eqx.filter_jit
def _end_of_passes(average: _PromptAverage, start_overlap: Float[Array, ""]) -> Float[Array, " 2"]:
    def step(carry):
        overlaps, _, steps = carry
        new = _step(average, overlaps)
        return new, jnp.max(jnp.abs(new - overlaps)), steps + 1

    def unsettled(carry):
        return (carry[1] > _CHANGE_TOLERANCE) & (carry[2] < _LARGEST_STEPS)

    overlaps, *_ = jax.lax.while_loop(
        unsettled, step, (jnp.stack([start_overlap, start_overlap]), jnp.asarray(jnp.inf), jnp.asarray(0))
    )
    return overlaps


@eqx.filter_jit
def _end_by_newton(average: _PromptAverage, start_overlap: Float[Array, ""]) -> Float[Array, " 2"]:
    """Return the end that the evolution reaches from overlaps `start_overlap`.

    The last, slow passes are replaced by steps of Newton's method. These are taken only where the slope of a pass is
    that of an end that attracts: a narrow passage that leads to another end is left as the evolution leaves it.
    """

    def plain(overlaps):
        return _step(average, overlaps)

    def newton(overlaps):
        new, slope = plain(overlaps), _slope(average, overlaps)
        system = jnp.eye(2) - slope
        end = overlaps + jnp.linalg.solve(system, new - overlaps)
        attracts = (jnp.trace(slope) < 2.0) & (jnp.linalg.det(system) > 0.0)
        return jnp.where(attracts & jnp.all((end > 0.0) & (end < 1.0)), end, new)

    def step(carry):
        overlaps, change, steps = carry
        new = jax.lax.cond(change < _NEWTON_THRESHOLD, newton, plain, overlaps)
        new = jnp.maximum(
            new, jnp.finfo(new.dtype).tiny
        )  # without a signal prompts add no precision, and √0 has no slope
        return new, jnp.max(jnp.abs(new - overlaps)), steps + 1

    def unsettled(carry):
        return (carry[1] > _CHANGE_TOLERANCE) & (carry[2] < _LARGEST_STEPS)

    begin = (jnp.stack([start_overlap, start_overlap]), jnp.asarray(jnp.inf), jnp.asarray(0))
    overlaps, *_ = jax.lax.while_loop(unsettled, step, begin)
    return overlaps


def _slope(average: _PromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, "2 2"]:
    """Derivatives of one pass with respect to the overlaps before it."""
    return jax.jacfwd(lambda at: _step(average, at))(overlaps)


@eqx.filter_jit
def _std_error(average: _PromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
    """Return the standard error of the risk at an end, from what each set of points changes to first order.

    A set that moves the overlaps of one pass by δ moves the end by `(I - slope)⁻¹ δ`.
    """

    def of_set(scores, values, noise):
        of_one_set = replace(average, scores=scores, values=values, noise=noise)
        return _step(of_one_set, overlaps), of_one_set.risk(overlaps)

    sets = (leaf.reshape(_SETS, -1, *leaf.shape[1:]) for leaf in (average.scores, average.values, average.noise))
    passes, risks = jax.vmap(of_set)(*sets)
    shifts = jnp.linalg.solve(jnp.eye(2) - _slope(average, overlaps), (passes - overlaps).T)
    return jnp.std(risks + jax.grad(average.risk)(overlaps) @ shifts, ddof=1) / _SETS**0.5


@eqx.filter_jit
def _passes(average: _PromptAverage, start_overlap: Float[Array, ""], count: int) -> _Evolution:
    def step(overlaps, _):
        new = _step(average, overlaps)
        return new, _Evolution(new[0], new[1], _risk(average, new))

    return jax.lax.scan(step, jnp.stack([start_overlap, start_overlap]), None, length=count)[1]


@eqx.filter_jit
def _risk(average: _PromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
    return average.risk(overlaps)


@eqx.filter_jit
def _entropies(average: _SpikedPromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, " points"]:
    """Return what every point contributes to the free entropy, which is their mean."""
    q_k, q_v = overlaps
    residuals, variance = average.residuals(q_v)
    exponents = average.estimated_scores(q_k) - 0.5 * average.strength**2 * q_k - 0.5 * residuals**2 / variance
    evidence = logsumexp(exponents, axis=1) - jnp.log(residuals.shape[1]) - 0.5 * jnp.log(2 * jnp.pi * variance)
    return 0.5 * jnp.sum(overlaps + jnp.log1p(-overlaps)) + average.alpha * evidence
