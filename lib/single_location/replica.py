"""The end of empirical risk minimisation on n = αD prompts, without simulation: the replica fixed point [D26].

For `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` the overlaps of the minimiser concentrate. They solve six equations: a prompt
acts on k and v through one proximal problem (`lib.single_location.prox`), and the average of its solutions over
prompts
gives the next overlaps. Replica-symmetric, cross overlaps zero: a prediction of statistical physics, not a theorem,
accurate where the minimum is unique; at ridges below about 0.1 it need not be.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Bool, Float, Int

from lib._checks import as_float, public, require_float64
from lib.single_location.activations import Activation
from lib.single_location.overlaps import Overlaps
from lib.single_location.prox import Channel
from lib.single_location.quasi_random import quasi_normals
from lib.single_location.tasks import LocationTask, require_setting, static_length

# Anderson's acceleration: number of stored states, steps between restarts (without them it may cycle), damping, and the
# largest change of a component in one step.
ANDERSON_HISTORY, ANDERSON_RESTART, ANDERSON_MIXING, LARGEST_CHANGE = 5, 20, 0.6, 0.7
# Largest residual of a fixed point, and largest number of steps.
RESIDUAL_TOLERANCE, LARGEST_STEPS = 1e-5, 200
# A prefix of one in COARSE_STRIDE points finds the fixed point to COARSE_TOLERANCE; all points then refine it.
COARSE_STRIDE, COARSE_TOLERANCE = 8, 1e-2
# Lower bound of the curvature during the iteration, as a share of the ridge.
SMALLEST_CURVATURE = 0.1
# Lower bound of the argument of a logarithm: with one token, keys have no effect and vanish.
LOG_FLOOR = 1e-10
# m = q - m² = V = ½, for keys and values alike.
START_STATE = np.asarray([0.5, 0.5, *np.log([0.5, 0.5, 0.5, 0.5])])
# By how much the score of a token exceeds all others at the start of the search for its minimum.
SCORE_LEAD = 2.0


class Replica(eqx.Module):
    """Prediction for the minimiser.

    Standard errors are the scatter between independently scrambled sets of quasi-random points, each with its own
    fixed
    point.

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


class State(eqx.Module):
    """The unknowns: four overlaps, and how far one more prompt may move a score and a value.

    Attributes:
      m_k: overlap `k·k*/D`.
      q_k: `|k|²/D`.
      var_k: variance $V_k$ of a score around its field.
      m_v: overlap `v·v*/D`.
      q_v: `|v|²/D`.
      var_v: variance $V_v$ of a value around its field.
    """

    m_k: Float[Array, ""]
    q_k: Float[Array, ""]
    var_k: Float[Array, ""]
    m_v: Float[Array, ""]
    q_v: Float[Array, ""]
    var_v: Float[Array, ""]

    @public
    def unconstrained(self) -> Float[Array, " 6"]:
        """Return six equivalent numbers without constraints: m and the logarithms of q - m² and of the variances.

        Returns:
          The numbers, shape (6,).

        Transformations: jit, vmap, grad.
        """
        extra_k, extra_v = self.q_k - self.m_k**2, self.q_v - self.m_v**2
        logs = jnp.log(jnp.maximum(jnp.stack([extra_k, extra_v, self.var_k, self.var_v]), LOG_FLOOR))
        return jnp.concatenate([jnp.stack([self.m_k, self.m_v]), logs])

    @classmethod
    @public
    def from_unconstrained(cls, unconstrained: Float[Array, " 6"]) -> "State":
        """Return the state with these unconstrained numbers.

        Args:
          unconstrained: the six numbers, shape (6,).

        Returns:
          The state.
        """
        m_k, m_v = unconstrained[:2]
        extra_k, extra_v, var_k, var_v = jnp.exp(unconstrained[2:])
        return cls(m_k, m_k**2 + extra_k, var_k, m_v, m_v**2 + extra_v, var_v)


class Setting(eqx.Module):
    """Everything that is held fixed.

    Attributes:
      task: the task.
      activation: the activation of the head.
      noise_std: standard deviation of the label noise.
      alpha: prompts per dimension.
      ridge_k: ridge of the key.
      ridge_v: ridge of the value.
    """

    task: LocationTask
    activation: Activation
    noise_std: Float[Array, ""] = eqx.field(converter=as_float)
    alpha: Float[Array, ""] = eqx.field(converter=as_float)
    ridge_k: Float[Array, ""] = eqx.field(converter=as_float)
    ridge_v: Float[Array, ""] = eqx.field(converter=as_float)


class Iterate(eqx.Module):
    """State of the iteration: the last few states and their residuals, and the best scores known of each prompt.

    Attributes:
      states: unconstrained states, the latest first.
      residuals: their residuals.
      chi: best scores of each prompt.
      steps: number of steps so far.
    """

    states: Float[Array, "memory 6"]
    residuals: Float[Array, "memory 6"]
    chi: Float[Array, "points L"]
    steps: Int[Array, ""]

    @property
    def state(self) -> State:
        """The latest state."""
        return State.from_unconstrained(self.states[0])


class PromptDraws(eqx.Module):
    """The randomness of a set of prompts, in units in which it is standard.

    Attributes:
      scores: normals of the scores.
      values: normals of the values.
      signal_scores: informative part of the scores.
      noise: normals of the labels.
    """

    scores: Float[Array, "points L"]
    values: Float[Array, "points L"]
    signal_scores: Float[Array, "points L"]
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
) -> Replica:
    """Return risk, overlaps and training loss of ridge-regularised ERM in the limit n = αD → ∞.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      noise_std: standard deviation of the label noise, shape (), at least 0.
      alpha: prompts per dimension n/D, shape (), positive.
      ridge: $(r_k, r_v)$ of `Σ_{i ≤ n} ½(y_i - f_i)² + ½r_k|k|² + ½r_v|v|²`, positive. The prediction is reliable for
        ridges
        from about 0.3 on; below 0.1 several minima compete, and L-BFGS ends near its start.
      points: number of prompts of one Sobol set, $2^k ≥ 8$.
      replicates: number of sets, at least 2.

    Returns:
      The prediction, with standard errors; a call takes seconds, growing like L².

    Raises:
      ValueError: if float64 is off, or outside the domain of an argument.

    Source: [D26], normalisation ours. Transformations: none of `task`, whose length must be concrete.
    """
    require_float64("replica", task.snr)
    length = static_length(task)
    require_setting("replica", noise_std=noise_std, alpha=alpha, ridge=ridge)
    if points < COARSE_STRIDE or points & (points - 1) or replicates < 2:
        raise ValueError(
            f"`replica(points, replicates)` needs points = 2^k ≥ {COARSE_STRIDE}, because Sobol sets are balanced "
            f"there, and replicates ≥ 2, because their scatter is the error bar. Got {points} and {replicates}."
        )
    setting = Setting(task, activation, noise_std, alpha, *ridge)
    return _solve(setting, jnp.asarray(quasi_normals(3 * length + 2, points, replicates)))


@eqx.filter_jit
def _solve(setting: Setting, normals: Float[Array, "replicates points coordinates"]) -> Replica:
    prompts = jax.vmap(lambda points: _prompts(setting.task, points))(normals)

    def fixed_point(prompts):
        coarse_prompts = jax.tree.map(lambda leaf: leaf[: leaf.shape[0] // COARSE_STRIDE], prompts)
        coarse = _iterate_to_fixed_point(setting, coarse_prompts, jnp.asarray(START_STATE), tolerance=COARSE_TOLERANCE)
        end = _iterate_to_fixed_point(setting, prompts, coarse.states[0], tolerance=RESIDUAL_TOLERANCE)
        risk, train_loss = _risk_and_loss(setting, prompts, end)
        overlaps = Overlaps(end.state.m_k, end.state.q_k, end.state.m_v, end.state.q_v)
        return risk, overlaps, train_loss, _largest_residual(end) < RESIDUAL_TOLERANCE, coarse.steps + end.steps

    risk, overlaps, train_loss, converged, steps = jax.vmap(fixed_point)(prompts)
    (risk, overlaps, train_loss), errors = _mean_and_error((risk, overlaps, train_loss))
    return Replica(risk, errors[0], overlaps, errors[1], train_loss, errors[2], jnp.all(converged), jnp.max(steps))


def _prompts(task: LocationTask, normals: Float[Array, "points coordinates"]) -> PromptDraws:
    """Three normals a token, one for the noise, and one whose probability level chooses the hidden token."""
    tokens, noise, level = normals[:, :-2], normals[:, -2], ndtr(normals[:, -1])
    scores, values, geometry = jnp.split(tokens, 3, axis=1)
    return PromptDraws(scores, values, jax.vmap(task.signal_scores)(geometry, level), noise)


def _iterate_to_fixed_point(
    setting: Setting, prompts: PromptDraws, start: Float[Array, " 6"], *, tolerance: float
) -> Iterate:
    """The fixed point by Anderson's acceleration, which the scores of the prompts follow."""

    def step(iterate):
        target, chi = update(setting, prompts, iterate)
        residuals = jnp.roll(iterate.residuals, 1, axis=0).at[0].set(target.unconstrained() - iterate.states[0])
        states = (
            jnp.roll(iterate.states, 1, axis=0)
            .at[0]
            .set(_anderson_step(iterate.states, residuals, iterate.steps % ANDERSON_RESTART))
        )
        return Iterate(states, residuals, chi, iterate.steps + 1)

    def unsettled(iterate):
        return (_largest_residual(iterate) >= tolerance) & (iterate.steps < LARGEST_STEPS)

    states = jnp.broadcast_to(start, (ANDERSON_HISTORY, 6))
    return jax.lax.while_loop(
        unsettled, step, Iterate(states, jnp.full((ANDERSON_HISTORY, 6), jnp.inf), prompts.scores, jnp.asarray(0))
    )


def _anderson_step(
    states: Float[Array, "memory 6"], residuals: Float[Array, "memory 6"], stored: Int[Array, ""]
) -> Float[Array, " 6"]:
    """Return Anderson's combination of the `stored` latest states, the one of the least residual.

    A component changes by at most `LARGEST_CHANGE`, because early residuals predict little far away, and m_k and m_v
    stay non-negative: linear attention has a second, worse minimum at about (-k, -v), which attracts early steps.
    """
    is_stored = (jnp.arange(1, ANDERSON_HISTORY) < stored + 1)[:, None]
    state_changes = jnp.where(is_stored, states[0] - states[1:], 0.0)
    residual_changes = jnp.where(is_stored, residuals[0] - residuals[1:], 0.0)
    gram = residual_changes @ residual_changes.T
    ridge = 1e-9 * jnp.trace(gram) + jnp.finfo(gram.dtype).tiny
    coefficients = jnp.linalg.solve(gram + ridge * jnp.eye(ANDERSON_HISTORY - 1), residual_changes @ residuals[0])
    step = ANDERSON_MIXING * residuals[0] - coefficients @ (state_changes + ANDERSON_MIXING * residual_changes)
    candidate = states[0] + jnp.clip(step, -LARGEST_CHANGE, LARGEST_CHANGE)
    return candidate.at[:2].set(jnp.abs(candidate[:2]))


def _largest_residual(iterate: Iterate) -> Float[Array, ""]:
    """The largest component of the last residual."""
    return jnp.max(jnp.abs(iterate.residuals[0]))


def _prompt_fields(setting: Setting, prompts: PromptDraws, state: State) -> Channel:
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
    """Where to look for the best scores: where they were last, where they would be without an answer, one token ahead.

    The token that is put ahead changes from turn to turn, so that every prompt tries all of them in L turns.
    """
    raised = channel.omega_k.at[step % channel.omega_k.size].set(jnp.max(channel.omega_k) + SCORE_LEAD)
    return jnp.stack([last_scores, channel.omega_k, raised])


@public
def update(setting: Setting, prompts: PromptDraws, iterate: Iterate) -> tuple[State, Float[Array, "points L"]]:
    """Return the next state by one pass of the replica equations, and the minimising scores.

    Averages of derivatives with respect to the fields are taken by Stein's identity, so the proximal map is never
    differentiated. The scores of plain Gaussian tokens are fields themselves (`ambient`), which adds a term to $m̂_k$.

    Args:
      setting: everything that is held fixed.
      prompts: the randomness of the prompts.
      iterate: state of the iteration.

    Returns:
      The next state, and the scores of each prompt, shape (points, L).

    Source: [D26]. Transformations: jit, vmap.
    """
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

    var_k = 1.0 / jnp.maximum(setting.ridge_k + stiffness_k, SMALLEST_CURVATURE * setting.ridge_k)
    var_v = 1.0 / jnp.maximum(setting.ridge_v + stiffness_v, SMALLEST_CURVATURE * setting.ridge_v)
    target = State(
        m_k=var_k * force_k,
        q_k=var_k**2 * (force_k**2 + alpha * _mean_dot(displacement_k, displacement_k)),
        var_k=var_k,
        m_v=var_v * force_v,
        q_v=var_v**2 * (force_v**2 + alpha * _mean_dot(displacement_v, displacement_v)),
        var_v=var_v,
    )
    return target, chi


def _risk_and_loss(
    setting: Setting, prompts: PromptDraws, iterate: Iterate
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


def _mean_dot(left: Float[Array, "points n"], right: Float[Array, "points n"]) -> Float[Array, ""]:
    """The mean over prompts of a scalar product over tokens."""
    return jnp.mean(jnp.sum(left * right, axis=1))


def _mean_and_error(samples):
    """Over the leading axis of every leaf: the mean, and its standard error."""
    means = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), samples)
    errors = jax.tree.map(lambda leaf: jnp.std(leaf, axis=0, ddof=1) / math.sqrt(leaf.shape[0]), samples)
    return means, errors
