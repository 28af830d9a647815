"""Where empirical risk minimisation ends when data are n = αD, without simulating it: the replica fixed point [D26].

For `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` the overlaps of the minimiser concentrate. They solve six equations: a prompt
acts on k and v through one proximal problem (`lib.single_location.prox`), and the average of its answers over prompts
gives the next overlaps. Replica-symmetric, cross overlaps zero: a prediction of statistical physics, not a theorem,
good where the minimum is unique; at ridges below about 0.1 it need not be.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Bool, Float, Int

from lib._checks import as_float, require_float64
from lib.single_location.activations import Activation
from lib.single_location.overlaps import Overlaps
from lib.single_location.prox import Channel
from lib.single_location.quasi_random import quasi_normals
from lib.single_location.tasks import LocationTask, require_setting, static_length

# Anderson's acceleration: states remembered, steps until all are forgotten (or it may cycle), share of a residual that
# is taken, longest step.
MEMORY, RESTART, MIXING, REACH = 5, 20, 0.6, 0.7
# The largest residual that counts as none, and how many steps may be spent on reaching it.
TOLERANCE, STEPS = 1e-5, 200
# A prefix of the points, one in so many, finds the neighbourhood of the fixed point; all of them find it.
COARSE, NEAR = 8, 1e-2
# On the way, curvature may not fall below this share of the ridge.
SOFTEST = 0.1
# What counts as zero where a logarithm is taken: with one token, keys are of no use and vanish.
NOTHING = 1e-10
# m = q - m² = V = ½, for keys and values alike.
START = np.asarray([0.5, 0.5, *np.log([0.5, 0.5, 0.5, 0.5])])
# How far a token is put ahead of all others where its minimum is looked for.
HEAD_START = 2.0


class Replica(eqx.Module):
    """What the fixed point says of the minimiser: excess risk, overlaps, and training loss `½ mean (y - f)²`.

    `std_error`, `overlaps_std_error` and `train_loss_std_error` are the scatter between independently scrambled sets
    of quasi-random points, each with a fixed point of its own. `converged` is False where one of them was not
    reached in `steps` steps: the numbers are then those of the last step.
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
    """The unknowns: four overlaps, and how far one more prompt may move a score and a value."""

    m_k: Float[Array, ""]
    q_k: Float[Array, ""]
    var_k: Float[Array, ""]
    m_v: Float[Array, ""]
    q_v: Float[Array, ""]
    var_v: Float[Array, ""]

    def free(self) -> Float[Array, " 6"]:
        """Six numbers without constraints that say the same: q exceeds m², and variances are positive."""
        extra_k, extra_v = self.q_k - self.m_k**2, self.q_v - self.m_v**2
        logs = jnp.log(jnp.maximum(jnp.stack([extra_k, extra_v, self.var_k, self.var_v]), NOTHING))
        return jnp.concatenate([jnp.stack([self.m_k, self.m_v]), logs])

    @classmethod
    def of(cls, free: Float[Array, " 6"]) -> "State":
        """The inverse of `free`."""
        m_k, m_v = free[:2]
        extra_k, extra_v, var_k, var_v = jnp.exp(free[2:])
        return cls(m_k, m_k**2 + extra_k, var_k, m_v, m_v**2 + extra_v, var_v)


class Setting(eqx.Module):
    """Everything that is held fixed: the task, the head, noise, sample ratio and ridges."""

    task: LocationTask
    activation: Activation
    noise_std: Float[Array, ""] = eqx.field(converter=as_float)
    alpha: Float[Array, ""] = eqx.field(converter=as_float)
    ridge_k: Float[Array, ""] = eqx.field(converter=as_float)
    ridge_v: Float[Array, ""] = eqx.field(converter=as_float)


class Iterate(eqx.Module):
    """Where the iteration is: the last few states and their residuals, the best scores known for each prompt."""

    states: Float[Array, "memory 6"]
    residuals: Float[Array, "memory 6"]
    chi: Float[Array, "points L"]
    steps: Int[Array, ""]

    @property
    def state(self) -> State:
        """The latest."""
        return State.of(self.states[0])


class PromptDraws(eqx.Module):
    """The randomness of a set of prompts, in units in which it is standard."""

    scores: Float[Array, "points L"]
    values: Float[Array, "points L"]
    hints: Float[Array, "points L"]
    noise: Float[Array, " points"]


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
    """Risk, overlaps and training loss of ridge-regularised ERM in the limit n = αD → ∞ [D26, normalisation ours].

    `ridge` is (r_k, r_v) in `Σ_{i ≤ n} ½(y_i - f_i)² + ½r_k|k|² + ½r_v|v|²`. Averages are over `replicates` scrambled
    Sobol sets of `points` = 2^k prompts; a call takes seconds, growing like L². Trust it for ridges from about 0.3 on;
    below 0.1 several minima compete, and L-BFGS ends where it started from. Needs float64.
    """
    require_float64("replica", task.snr)
    length = static_length(task)
    require_setting("replica", noise_std=noise_std, alpha=alpha, ridge=ridge)
    if points < COARSE or points & (points - 1) or replicates < 2:
        raise ValueError(
            f"`replica(points, replicates)` needs points = 2^k ≥ {COARSE}, because Sobol sets are balanced there, and "
            f"replicates ≥ 2, because their scatter is the error bar. Got {points} and {replicates}."
        )
    setting = Setting(task, activation, noise_std, alpha, *ridge)
    return _solve(setting, jnp.asarray(quasi_normals(3 * length + 2, points, replicates)))


@eqx.filter_jit
def _solve(setting: Setting, normals: Float[Array, "replicates points coordinates"]) -> Replica:
    prompts = jax.vmap(lambda points: _prompts(setting.task, points))(normals)

    def fixed_point(prompts):
        few = jax.tree.map(lambda leaf: leaf[: leaf.shape[0] // COARSE], prompts)
        near = _iterate(setting, few, jnp.asarray(START), tolerance=NEAR)
        end = _iterate(setting, prompts, near.states[0], tolerance=TOLERANCE)
        risk, train_loss = measure(setting, prompts, end)
        overlaps = Overlaps(end.state.m_k, end.state.q_k, end.state.m_v, end.state.q_v)
        return risk, overlaps, train_loss, change(end) < TOLERANCE, near.steps + end.steps

    risk, overlaps, train_loss, converged, steps = jax.vmap(fixed_point)(prompts)
    (risk, overlaps, train_loss), errors = _mean_and_error((risk, overlaps, train_loss))
    return Replica(risk, errors[0], overlaps, errors[1], train_loss, errors[2], jnp.all(converged), jnp.max(steps))


def _prompts(task: LocationTask, normals: Float[Array, "points coordinates"]) -> PromptDraws:
    """Three normals a token, one for the noise, and one whose probability level chooses the hidden token."""
    tokens, noise, level = normals[:, :-2], normals[:, -2], ndtr(normals[:, -1])
    scores, values, geometry = jnp.split(tokens, 3, axis=1)
    return PromptDraws(scores, values, jax.vmap(task.hint)(geometry, level), noise)


def _iterate(setting: Setting, prompts: PromptDraws, start: Float[Array, " 6"], *, tolerance: float) -> Iterate:
    """The fixed point by Anderson's acceleration, which the scores of the prompts follow."""

    def step(at):
        target, chi = update(setting, prompts, at)
        residuals = jnp.roll(at.residuals, 1, axis=0).at[0].set(target.free() - at.states[0])
        states = jnp.roll(at.states, 1, axis=0).at[0].set(accelerate(at.states, residuals, at.steps % RESTART))
        return Iterate(states, residuals, chi, at.steps + 1)

    def unsettled(at):
        return (change(at) >= tolerance) & (at.steps < STEPS)

    states = jnp.broadcast_to(start, (MEMORY, 6))
    return jax.lax.while_loop(
        unsettled, step, Iterate(states, jnp.full((MEMORY, 6), jnp.inf), prompts.scores, jnp.asarray(0))
    )


def accelerate(
    states: Float[Array, "memory 6"], residuals: Float[Array, "memory 6"], known: Int[Array, ""]
) -> Float[Array, " 6"]:
    """The next state, of the `known` latest and their residuals: Anderson's combination whose residual is least.

    Never further than `REACH` in a component, because early residuals are no guide to far away, and never to negative
    m_k or m_v: linear attention has a second, worse minimum at about (-k, -v), which early steps would fall into.
    """
    usable = (jnp.arange(1, MEMORY) < known + 1)[:, None]
    moves = jnp.where(usable, states[0] - states[1:], 0.0)
    turns = jnp.where(usable, residuals[0] - residuals[1:], 0.0)
    gram = turns @ turns.T
    ridge = 1e-9 * jnp.trace(gram) + jnp.finfo(gram.dtype).tiny
    share = jnp.linalg.solve(gram + ridge * jnp.eye(MEMORY - 1), turns @ residuals[0])
    step = MIXING * residuals[0] - share @ (moves + MIXING * turns)
    ahead = states[0] + jnp.clip(step, -REACH, REACH)
    return ahead.at[:2].set(jnp.abs(ahead[:2]))


def change(at: Iterate) -> Float[Array, ""]:
    """The largest component of the last residual."""
    return jnp.max(jnp.abs(at.residuals[0]))


def fields(setting: Setting, prompts: PromptDraws, state: State) -> Channel:
    """The fields of all prompts at the given overlaps: `ω_k` around m_k times the hint, `ω_v`, and `y` given `ω_v`."""
    spread_k = jnp.sqrt(state.q_k - setting.task.ambient * state.m_k**2)
    omega_v = jnp.sqrt(state.q_v) * prompts.values
    slope = state.m_v / state.q_v
    unknown = jnp.sqrt(1.0 + setting.noise_std**2 - state.m_v * slope)
    return Channel(
        omega_k=state.m_k * prompts.hints + spread_k * prompts.scores,
        omega_v=omega_v,
        var_k=jnp.broadcast_to(state.var_k, prompts.noise.shape),
        var_v=jnp.broadcast_to(state.var_v, prompts.noise.shape),
        label=slope * omega_v[:, 0] + unknown * prompts.noise,
    )


def starts(channel: Channel, known: Float[Array, " L"], turn: Int[Array, ""]) -> Float[Array, "3 L"]:
    """Where to look for the best scores: where they were last, where they would be without an answer, one token ahead.

    The token that is put ahead changes from turn to turn, so that every prompt tries all of them in L turns.
    """
    ahead = channel.omega_k.at[turn % channel.omega_k.size].set(jnp.max(channel.omega_k) + HEAD_START)
    return jnp.stack([known, channel.omega_k, ahead])


def update(setting: Setting, prompts: PromptDraws, at: Iterate) -> tuple[State, Float[Array, "points L"]]:
    """One pass of the replica equations, and the minimising scores.

    Averages of derivatives with respect to the fields are taken by Stein's identity, so the proximal map is never
    differentiated. The scores of plain Gaussian tokens are fields themselves (`ambient`), which adds a term to m̂_k.
    """
    task, alpha, state = setting.task, setting.alpha, at.state
    channel = fields(setting, prompts, state)
    tried = jax.vmap(starts, in_axes=(0, 0, None))(channel, at.chi, at.steps)
    chi = jax.vmap(setting.activation.prox)(channel, tried)
    values = jax.vmap(Channel.values)(channel, setting.activation.weights(chi))
    pull_k = (chi - channel.omega_k) / state.var_k
    pull_v = (values - channel.omega_v) / state.var_v

    known = 1.0 + setting.noise_std**2
    spread_k = state.q_k - task.ambient * state.m_k**2
    stiffness_k = -alpha * mean_dot(pull_k, prompts.scores) / jnp.sqrt(spread_k)
    force_k = alpha * mean_dot(pull_k, prompts.hints) + task.ambient * state.m_k * stiffness_k

    answer, others = channel.omega_v[:, :1], channel.omega_v[:, 1:]
    surprise = channel.label[:, None] - state.m_v / state.q_v * answer
    force_v = alpha * mean_dot(pull_v[:, :1], surprise) / (known - state.m_v**2 / state.q_v)
    rest = answer - state.m_v / known * channel.label[:, None]
    stiffness_v = -alpha * (
        mean_dot(pull_v[:, :1], rest) / (state.q_v - state.m_v**2 / known) + mean_dot(pull_v[:, 1:], others) / state.q_v
    )

    var_k = 1.0 / jnp.maximum(setting.ridge_k + stiffness_k, SOFTEST * setting.ridge_k)
    var_v = 1.0 / jnp.maximum(setting.ridge_v + stiffness_v, SOFTEST * setting.ridge_v)
    target = State(
        m_k=var_k * force_k,
        q_k=var_k**2 * (force_k**2 + alpha * mean_dot(pull_k, pull_k)),
        var_k=var_k,
        m_v=var_v * force_v,
        q_v=var_v**2 * (force_v**2 + alpha * mean_dot(pull_v, pull_v)),
        var_v=var_v,
    )
    return target, chi


def measure(setting: Setting, prompts: PromptDraws, at: Iterate) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Excess risk on a fresh prompt, and mean loss on a training prompt, at the end of the iteration."""
    channel = fields(setting, prompts, at.state)
    fresh, trained = setting.activation.weights(channel.omega_k), setting.activation.weights(at.chi)
    risk = 1.0 - 2.0 * at.state.m_v * jnp.mean(fresh[:, 0]) + at.state.q_v * mean_dot(fresh, fresh)
    answers = jnp.sum(trained * jax.vmap(Channel.values)(channel, trained), axis=1)
    return risk, 0.5 * jnp.mean((channel.label - answers) ** 2)


def mean_dot(left: Float[Array, "points n"], right: Float[Array, "points n"]) -> Float[Array, ""]:
    """The mean over prompts of a scalar product over tokens."""
    return jnp.mean(jnp.sum(left * right, axis=1))


def _mean_and_error(samples):
    """Over the leading axis of every leaf: the mean, and its standard error."""
    means = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), samples)
    errors = jax.tree.map(lambda leaf: jnp.std(leaf, axis=0, ddof=1) / math.sqrt(leaf.shape[0]), samples)
    return means, errors
