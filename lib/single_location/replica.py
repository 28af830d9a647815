"""The end of empirical risk minimisation on n = αD prompts, without simulation: the replica fixed point [D26].

For `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` the overlaps of the minimiser concentrate. They solve six equations: a prompt
acts on k and v through one proximal problem (`lib.single_location._prox`), and the average of its solutions over
prompts gives the next overlaps. Replica-symmetric, cross overlaps zero: a prediction of statistical physics, not a
theorem, accurate where the minimum is unique; at ridges below about 0.1 it need not be.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Bool, Float, Int

from lib._checks import as_float, public, require_float64
from lib._quasi_random import quasi_normals
from lib._types import AnyArray
from lib.single_location._prox import Channel
from lib.single_location.activations import Activation
from lib.single_location.tasks import LocationTask, Overlaps, _require_setting, _static_length

# Anderson's acceleration: number of stored states, steps between restarts (without them it may cycle), damping, and the
# largest change of a component in one step.
_ANDERSON_HISTORY, _ANDERSON_RESTART, _ANDERSON_MIXING, _LARGEST_CHANGE = 5, 20, 0.6, 0.7
# Largest residual of a fixed point, and largest number of steps.
_RESIDUAL_TOLERANCE, _LARGEST_STEPS = 1e-5, 200
# A prefix of one in COARSE_STRIDE points finds the fixed point to COARSE_TOLERANCE; all points then refine it.
_COARSE_STRIDE, _COARSE_TOLERANCE = 8, 1e-2
# Lower bound of the curvature during the iteration, as a share of the ridge.
_SMALLEST_CURVATURE = 0.1
# Lower bound of the argument of a logarithm: with one token, keys have no effect and vanish.
_LOG_FLOOR = 1e-10
# m = q - m² = V = ½, for keys and values alike.
_START_STATE = np.asarray([0.5, 0.5, *np.log([0.5, 0.5, 0.5, 0.5])])
# By how much the score of a token exceeds all others at the start of the search for its minimum.
_SCORE_LEAD = 2.0


class _Replica(eqx.Module):
    """Prediction for the minimiser.

    Standard errors are the scatter between independently scrambled sets of quasi-random points, each with its own
    fixed point.

    Attributes:
      risk: excess risk.
      std_error: its standard error.
      overlaps: overlaps of the minimiser.
      overlaps_std_error: their standard errors.
      train_loss: mean of `½(y - f)²` over the training prompts.
      train_loss_std_error: its standard error.
      converged: whether every set reached its fixed point; otherwise the numbers are those of the last step.
      steps: largest number of steps of a set.
    """

    risk: Float[Array, ""]
    std_error: Float[Array, ""]
    overlaps: Overlaps
    overlaps_std_error: Overlaps
    train_loss: Float[Array, ""]
    train_loss_std_error: Float[Array, ""]
    converged: Bool[Array, ""]
    steps: Int[Array, ""]


class _State(eqx.Module):
    """The unknowns: four overlaps, and how far one more prompt may move a score and a value."""

    m_k: Float[Array, ""]
    q_k: Float[Array, ""]
    var_k: Float[Array, ""]
    m_v: Float[Array, ""]
    q_v: Float[Array, ""]
    var_v: Float[Array, ""]

    @public
    def unconstrained(self) -> Float[Array, " 6"]:
        """Return six equivalent numbers without constraints: m and the logarithms of q - m² and of the variances."""
        extra_k, extra_v = self.q_k - self.m_k**2, self.q_v - self.m_v**2
        logs = jnp.log(jnp.maximum(jnp.stack([extra_k, extra_v, self.var_k, self.var_v]), _LOG_FLOOR))
        return jnp.concatenate([jnp.stack([self.m_k, self.m_v]), logs])

    @classmethod
    @public
    def from_unconstrained(cls, unconstrained: Float[Array, " 6"]) -> "_State":
        """Return the state with these unconstrained numbers."""
        m_k, m_v = unconstrained[:2]
        extra_k, extra_v, var_k, var_v = jnp.exp(unconstrained[2:])
        return cls(m_k, m_k**2 + extra_k, var_k, m_v, m_v**2 + extra_v, var_v)


class _Setting(eqx.Module):
    """Everything that is held fixed."""

    task: LocationTask
    activation: Activation
    noise_std: Float[Array, ""] = eqx.field(converter=as_float)
    alpha: Float[Array, ""] = eqx.field(converter=as_float)
    ridge_k: Float[Array, ""] = eqx.field(converter=as_float)
    ridge_v: Float[Array, ""] = eqx.field(converter=as_float)


class _Iterate(eqx.Module):
    """State of the iteration: the last few states and their residuals, and the best scores known of each prompt."""

    states: Float[Array, "memory 6"]
    residuals: Float[Array, "memory 6"]
    chi: Float[Array, "points L"]
    steps: Int[Array, ""]

    @property
    def state(self) -> _State:
        """The latest state."""
        return _State.from_unconstrained(self.states[0])


class _PromptDraws(eqx.Module):
    """The randomness of a set of prompts, in units in which it is standard."""

    scores: Float[Array, "points L"]
    values: Float[Array, "points L"]
    signal_scores: Float[AnyArray, "points L"]
    noise: Float[Array, " points"]


@public
def replica(
    task: LocationTask,
    activation: Activation,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float | Float[Array, ""],
    ridge: tuple[float | Float[Array, ""], float | Float[Array, ""]],
    points: int = 4096,
    replicates: int = 8,
) -> _Replica:
    """Return risk, overlaps and training loss of ridge-regularised ERM in the limit n = αD → ∞.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      noise_std: standard deviation of the label noise, shape (), at least 0.
      alpha: prompts per dimension n/D, shape (), positive.
      ridge: $(r_k, r_v)$ of `Σ_{i ≤ n} ½(y_i - f_i)² + ½r_k|k|² + ½r_v|v|²`, positive. The prediction is reliable for
        ridges from about 0.3 on; below 0.1 several minima compete, and L-BFGS ends near its start.
      points: number of prompts of one Sobol set, $2^k ≥ 8$.
      replicates: number of sets, at least 2.

    Returns:
      `.risk` (excess risk) and `.std_error`, `.overlaps` and `.overlaps_std_error` of the minimiser, `.train_loss` (the
      mean of `½(y - f)²` over the training prompts) and `.train_loss_std_error`; `.converged`: whether every set of
      points reached its fixed point, and `.steps`, the largest number of steps of a set. A call takes seconds, growing
      like L².

    Raises:
      ValueError: if float64 is off, or outside the domain of an argument.

    Source: [D26], normalisation ours. Transformations: none of `task`, whose length must be concrete.
    """
    require_float64("replica", task.snr)
    length = _static_length(task)
    _require_setting("replica", noise_std=noise_std, alpha=alpha, ridge=ridge)
    if points < _COARSE_STRIDE or points & (points - 1) or replicates < 2:
        raise ValueError(
            f"`replica(points, replicates)` needs points = 2^k ≥ {_COARSE_STRIDE}, because Sobol sets are balanced "
            f"there, and replicates ≥ 2, because their scatter is the error bar. Got {points} and {replicates}."
        )
    setting = _Setting(task, activation, noise_std, alpha, *ridge)
    return _solve(setting, jnp.asarray(quasi_normals(3 * length + 2, points, range(replicates))))


@eqx.filter_jit
def _solve(setting: _Setting, normals: Float[Array, "replicates points coordinates"]) -> _Replica:
    prompts = jax.vmap(lambda points: _prompts(setting.task, points))(normals)

    def fixed_point(prompts):
        coarse_prompts = jax.tree.map(lambda leaf: leaf[: leaf.shape[0] // _COARSE_STRIDE], prompts)
        coarse = _iterate_to_fixed_point(
            setting, coarse_prompts, jnp.asarray(_START_STATE), tolerance=_COARSE_TOLERANCE
        )
        end = _iterate_to_fixed_point(setting, prompts, coarse.states[0], tolerance=_RESIDUAL_TOLERANCE)
        risk, train_loss = _risk_and_loss(setting, prompts, end)
        overlaps = Overlaps(end.state.m_k, end.state.q_k, end.state.m_v, end.state.q_v)
        return risk, overlaps, train_loss, _largest_residual(end) < _RESIDUAL_TOLERANCE, coarse.steps + end.steps

    risk, overlaps, train_loss, converged, steps = jax.lax.map(fixed_point, prompts)
    (risk, overlaps, train_loss), errors = _mean_and_error((risk, overlaps, train_loss))
    return _Replica(risk, errors[0], overlaps, errors[1], train_loss, errors[2], jnp.all(converged), jnp.max(steps))


def _prompts(task: LocationTask, normals: Float[Array, "points coordinates"]) -> _PromptDraws:
    """Three normals a token, one for the noise, and one whose probability level chooses the hidden token."""
    tokens, noise, level = normals[:, :-2], normals[:, -2], ndtr(normals[:, -1])
    scores, values, geometry = jnp.split(tokens, 3, axis=1)
    return _PromptDraws(scores, values, jax.vmap(task.signal_scores)(geometry, level), noise)


def _iterate_to_fixed_point(
    setting: _Setting, prompts: _PromptDraws, start: Float[Array, " 6"], *, tolerance: float
) -> _Iterate:
    """The fixed point by Anderson's acceleration, which the scores of the prompts follow."""

    def step(iterate):
        target, chi = _update(setting, prompts, iterate)
        residuals = jnp.roll(iterate.residuals, 1, axis=0).at[0].set(target.unconstrained() - iterate.states[0])
        states = (
            jnp.roll(iterate.states, 1, axis=0)
            .at[0]
            .set(_anderson_step(iterate.states, residuals, iterate.steps % _ANDERSON_RESTART))
        )
        return _Iterate(states, residuals, chi, iterate.steps + 1)

    def unsettled(iterate):
        return (_largest_residual(iterate) >= tolerance) & (iterate.steps < _LARGEST_STEPS)

    states = jnp.broadcast_to(start, (_ANDERSON_HISTORY, 6))
    return jax.lax.while_loop(
        unsettled, step, _Iterate(states, jnp.full((_ANDERSON_HISTORY, 6), jnp.inf), prompts.scores, jnp.asarray(0))
    )


def _anderson_step(
    states: Float[Array, "memory 6"], residuals: Float[Array, "memory 6"], stored: Int[Array, ""]
) -> Float[Array, " 6"]:
    """Return Anderson's combination of the `stored` latest states, the one of the least residual."""
    is_stored = (jnp.arange(1, _ANDERSON_HISTORY) < stored + 1)[:, None]
    state_changes = jnp.where(is_stored, states[0] - states[1:], 0.0)
    residual_changes = jnp.where(is_stored, residuals[0] - residuals[1:], 0.0)
    gram = residual_changes @ residual_changes.T
    ridge = 1e-9 * jnp.trace(gram) + jnp.finfo(gram.dtype).tiny
    coefficients = jnp.linalg.solve(gram + ridge * jnp.eye(_ANDERSON_HISTORY - 1), residual_changes @ residuals[0])
    step = _ANDERSON_MIXING * residuals[0] - coefficients @ (state_changes + _ANDERSON_MIXING * residual_changes)
    candidate = states[0] + jnp.clip(step, -_LARGEST_CHANGE, _LARGEST_CHANGE)
    return candidate.at[:2].set(jnp.abs(candidate[:2]))


def _largest_residual(iterate: _Iterate) -> Float[Array, ""]:
    """The largest component of the last residual."""
    return jnp.max(jnp.abs(iterate.residuals[0]))


def _prompt_fields(setting: _Setting, prompts: _PromptDraws, state: _State) -> Channel:
    """Return the fields of all prompts: `ω_k` around m_k times the signal, `ω_v`, and `y` given `ω_v`."""
    spread_k = jnp.sqrt(state.q_k - setting.task.ambient * state.m_k**2)
    omega_v = jnp.sqrt(state.q_v) * prompts.values
    slope = state.m_v / state.q_v
    label_spread = jnp.sqrt(1.0 + setting.noise_std**2 - state.m_v * slope)
    return Channel(
        omega_k=state.m_k * prompts.signal_scores + spread_k * prompts.scores,
        omega_v=omega_v,
        var_k=jnp.broadcast_to(state.var_k, prompts.noise.shape),
        var_v=jnp.broadcast_to(state.var_v, prompts.noise.shape),
        label=slope * omega_v[:, 0] + label_spread * prompts.noise,
    )


def _prox_starts(channel: Channel, last_scores: Float[Array, " L"], step: Int[Array, ""]) -> Float[Array, "3 L"]:
    """Return starts of the search for scores: the last ones, the fields, and the fields with one token ahead."""
    raised = channel.omega_k.at[step % channel.omega_k.size].set(jnp.max(channel.omega_k) + _SCORE_LEAD)
    return jnp.stack([last_scores, channel.omega_k, raised])


@public
def _update(setting: _Setting, prompts: _PromptDraws, iterate: _Iterate) -> tuple[_State, Float[Array, "points L"]]:
    """Return the next state by one pass of the replica equations, and the minimising scores."""
    task, alpha, state = setting.task, setting.alpha, iterate.state
    channel = _prompt_fields(setting, prompts, state)
    starting_scores = jax.vmap(_prox_starts, in_axes=(0, 0, None))(channel, iterate.chi, iterate.steps)
    chi = jax.vmap(setting.activation.prox)(channel, starting_scores)
    values = jax.vmap(Channel.values)(channel, setting.activation.weights(chi))
    displacement_k = (chi - channel.omega_k) / state.var_k
    displacement_v = (values - channel.omega_v) / state.var_v

    answer_variance = 1.0 + setting.noise_std**2
    spread_k = state.q_k - task.ambient * state.m_k**2
    stiffness_k = -alpha * _mean_dot(displacement_k, prompts.scores) / jnp.sqrt(spread_k)
    force_k = alpha * _mean_dot(displacement_k, prompts.signal_scores) + task.ambient * state.m_k * stiffness_k

    hidden_field, other_fields = channel.omega_v[:, :1], channel.omega_v[:, 1:]
    label_residual = channel.label[:, None] - state.m_v / state.q_v * hidden_field
    force_v = alpha * _mean_dot(displacement_v[:, :1], label_residual) / (answer_variance - state.m_v**2 / state.q_v)
    field_residual = hidden_field - state.m_v / answer_variance * channel.label[:, None]
    stiffness_v = -alpha * (
        _mean_dot(displacement_v[:, :1], field_residual) / (state.q_v - state.m_v**2 / answer_variance)
        + _mean_dot(displacement_v[:, 1:], other_fields) / state.q_v
    )

    var_k = 1.0 / jnp.maximum(setting.ridge_k + stiffness_k, _SMALLEST_CURVATURE * setting.ridge_k)
    var_v = 1.0 / jnp.maximum(setting.ridge_v + stiffness_v, _SMALLEST_CURVATURE * setting.ridge_v)
    target = _State(
        m_k=var_k * force_k,
        q_k=var_k**2 * (force_k**2 + alpha * _mean_dot(displacement_k, displacement_k)),
        var_k=var_k,
        m_v=var_v * force_v,
        q_v=var_v**2 * (force_v**2 + alpha * _mean_dot(displacement_v, displacement_v)),
        var_v=var_v,
    )
    return target, chi


def _risk_and_loss(
    setting: _Setting, prompts: _PromptDraws, iterate: _Iterate
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Excess risk on a fresh prompt, and mean loss on a training prompt, at the end of the iteration."""
    channel = _prompt_fields(setting, prompts, iterate.state)
    fresh_weights, trained_weights = (
        setting.activation.weights(channel.omega_k),
        setting.activation.weights(iterate.chi),
    )
    risk = (
        1.0
        - 2.0 * iterate.state.m_v * jnp.mean(fresh_weights[:, 0])
        + iterate.state.q_v * _mean_dot(fresh_weights, fresh_weights)
    )
    outputs = jnp.sum(trained_weights * jax.vmap(Channel.values)(channel, trained_weights), axis=1)
    return risk, 0.5 * jnp.mean((channel.label - outputs) ** 2)


def _mean_dot(left: Float[AnyArray, "points n"], right: Float[AnyArray, "points n"]) -> Float[Array, ""]:
    """The mean over prompts of a scalar product over tokens."""
    return jnp.mean(jnp.sum(left * right, axis=1))


def _mean_and_error(samples):
    """Over the leading axis of every leaf: the mean, and its standard error."""
    means = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), samples)
    errors = jax.tree.map(lambda leaf: jnp.std(leaf, axis=0, ddof=1) / math.sqrt(leaf.shape[0]), samples)
    return means, errors
