"""Simulated empirical risk minimisation: n prompts in dimension D, L-BFGS, and the trained head.

The replica equations must agree with this simulation, and where they do not apply (weak ridges, several minima) it is
the only source. The test risk needs no test set: it is a function of the seven overlaps of the trained head.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jax.scipy.special import ndtr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lib._checks import public, require_float64
from lib.single_location._quasi_random import quasi_normals
from lib.single_location.activations import Activation
from lib.single_location.overlaps import Head, Overlaps
from lib.single_location.tasks import LocationTask, _static_length

_LARGEST_STEPS = 2000
# The gradient that ends L-BFGS, relative to the typical gradient √D of one prompt.
_GRADIENT_TOLERANCE = 1e-5
_RISK_POINTS = 2**14
# Folded into the key of a run, the key of its trainer.
_TRAINER_STREAM = 3


class TrainingSet(eqx.Module):
    """n prompts of L tokens in $R^D$, the hidden token first, and their labels.

    Attributes:
      tokens: the tokens.
      labels: the noisy labels.
    """

    tokens: Float[Array, "n L D"]
    labels: Float[Array, " n"]


class ErmResult(eqx.Module):
    """Result of a training run.

    Attributes:
      risk: excess risk on fresh prompts.
      overlaps: the seven overlaps of the trained head.
      train_loss: mean of `½(y - f)²` over the training prompts.
      objective: the minimised sum over D.
      flatness: norm of the gradient of the objective, relative to a typical gradient of one prompt.
      steps: number of steps.
    """

    risk: Float[Array, ""]
    overlaps: Overlaps
    train_loss: Float[Array, ""]
    objective: Float[Array, ""]
    flatness: Float[Array, ""]
    steps: Int[Array, ""]


_Start = Callable[[Head, PRNGKeyArray], Head]


@public
def informed(truth: Head, key: PRNGKeyArray) -> Head:
    """Return a start at the hidden directions themselves.

    Args:
      truth: the hidden directions.
      key: not used.

    Returns:
      The start.
    """
    return truth


@public
def uninformed(truth: Head, key: PRNGKeyArray) -> Head:
    """Return a start at two independent standard normal vectors.

    Args:
      truth: the hidden directions; only their shape counts.
      key: random key.

    Returns:
      The start.
    """
    key_key, value_key = jr.split(key)
    size = truth.key.shape
    return Head(jr.normal(key_key, size, truth.key.dtype), jr.normal(value_key, size, truth.key.dtype))


_Ridge = tuple[float | Float[Array, ""], float | Float[Array, ""]]
# Fits a head to prompts from a given head, with a random key; returns the fitted head and the number of steps.
_Trainer = Callable[[Activation, TrainingSet, _Ridge, Head, PRNGKeyArray], tuple[Head, Int[Array, ""]]]


@public
def simulate_erm(
    task: LocationTask,
    activation: Activation,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float,
    ridge: _Ridge,
    dimension: int,
    start: _Start,
    trainer: _Trainer | None = None,
    key: PRNGKeyArray,
) -> ErmResult:
    """Return the result of one training run on `round(alpha * dimension)` fresh prompts.

    It minimises `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²`, the loss of `replica`, from `start` to the bottom of its valley.
    Memory
    and a step of L-BFGS both cost alpha·L·D² numbers. `simulate_seeds` repeats it.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.
      ridge: ridges $(r_k, r_v)$.
      dimension: dimension D.
      start: a function of the hidden directions and a key that returns the first head, such as `informed`.
      trainer: a function that fits the head, such as those of `descent_trainers`; L-BFGS by default.
      key: random key.

    Returns:
      The `ErmResult`; each of its numbers has the shape ().

    Raises:
      ValueError: if float64 is off, or if the length is traced or above 500.

    Source: the setting of [D26].
    """
    require_float64("simulate_erm", task.snr)
    truth_key, prompt_key, start_key = jr.split(key, 3)
    truth = draw_truth(dimension, key=truth_key)
    prompts = draw_prompts(task, truth, round(alpha * dimension), noise_std=noise_std, key=prompt_key)
    objective = _penalised_loss(activation, prompts, ridge)
    start_head = start(truth, start_key)
    if trainer is None:
        head, _, steps = _minimise(objective, start_head)
    else:
        head, steps = trainer(activation, prompts, ridge, start_head, jr.fold_in(key, _TRAINER_STREAM))
    overlaps = overlaps_of(head, truth)
    return ErmResult(
        risk=fresh_risk(task, activation, overlaps),
        overlaps=overlaps,
        train_loss=_train_loss(activation, prompts, head),
        objective=objective(head),
        flatness=jnp.sqrt(dimension) * optax.tree.norm(jax.grad(objective)(head)),
        steps=steps,
    )


@public
def simulate_seeds(
    task: LocationTask, activation: Activation, *, dimension: int, seeds: Sequence[int], batch: int = 1, **options: Any
) -> ErmResult:
    """Return `simulate_erm` for each seed, stacked; the key of a run is its seed folded with the dimension.

    Compiled once for all seeds.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      dimension: dimension D.
      seeds: the seeds.
      batch: number of runs that are computed at once. 1 is fastest on a CPU, where a run fills the cores and the
        memory.
      options: the other keyword arguments of `simulate_erm`, without `key`.

    Returns:
      The results, each leaf with a leading axis of seeds.

    Raises:
      ValueError: as `simulate_erm`.
    """
    keys = jnp.stack([jr.fold_in(jr.key(seed), dimension) for seed in seeds])

    def train(key):
        return simulate_erm(task, activation, dimension=dimension, **options, key=key)

    batch_size = None if batch == 1 else batch
    return jax.jit(lambda keys: jax.lax.map(train, keys, batch_size=batch_size))(keys)


@public
def _penalised_loss(activation: Activation, prompts: TrainingSet, ridge: _Ridge) -> Callable[[Head], Float[Array, ""]]:
    """Return the function `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` over D of the head."""

    def objective(head):
        penalty = 0.5 * (ridge[0] * head.key @ head.key + ridge[1] * head.value @ head.value)
        return (prompts.labels.size * _train_loss(activation, prompts, head) + penalty) / head.key.size

    return objective


@public
def draw_truth(dimension: int, *, key: PRNGKeyArray) -> Head:
    """Return two random orthogonal directions of squared norm D.

    Args:
      dimension: dimension D, at least 2.
      key: random key.

    Returns:
      The directions, a head.
    """
    frame, _ = jnp.linalg.qr(jr.normal(key, (dimension, 2)))
    return Head(*(jnp.sqrt(dimension) * frame.T))


@public
def draw_prompts(
    task: LocationTask, truth: Head, n: int, *, noise_std: float | Float[Array, ""], key: PRNGKeyArray
) -> TrainingSet:
    """Return `n` prompts of the task, the hidden token first; no head of this family depends on the order.

    Args:
      task: the task, with concrete length L ≤ 500.
      truth: the hidden directions.
      n: number of prompts.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      key: random key.

    Returns:
      Tokens of shape (n, L, D) and labels of shape (n,).

    Source: [D26].
    """
    token_key, geometry_key, level_key, noise_key = jr.split(key, 4)
    length, dimension = _static_length(task), truth.key.size
    signal_scores = jax.vmap(task.signal_scores)(jr.normal(geometry_key, (n, length)), jr.uniform(level_key, (n,)))
    tokens = jr.normal(token_key, (n, length, dimension))
    along_key = signal_scores / jnp.sqrt(dimension) - task.ambient * tokens @ truth.key / dimension
    tokens = tokens + along_key[..., None] * truth.key
    labels = tokens[:, 0] @ truth.value / jnp.sqrt(dimension) + noise_std * jr.normal(noise_key, (n,))
    return TrainingSet(tokens, labels)


@public
def head_output(activation: Activation, prompts: TrainingSet, head: Head) -> Float[Array, " n"]:
    """Return the outputs `Σ_l s_l(χ) z_l` of a head.

    Args:
      activation: the activation of the head.
      prompts: the prompts.
      head: the head, in the normalisation of [D26].

    Returns:
      One output per prompt, shape (n,).

    Transformations: jit, vmap, grad.
    """
    projections = prompts.tokens @ jnp.stack([head.key, head.value], axis=1) / jnp.sqrt(head.key.size)
    return jnp.sum(activation.weights(projections[..., 0]) * projections[..., 1], axis=1)


@public
def _train_loss(activation: Activation, prompts: TrainingSet, head: Head) -> Float[Array, ""]:
    """Return half the mean squared error of a head on the prompts."""
    return 0.5 * jnp.mean((prompts.labels - head_output(activation, prompts, head)) ** 2)


@public
def _minimise(
    objective: Callable[[Head], Float[Array, ""]], head: Head
) -> tuple[Head, Float[Array, ""], Int[Array, ""]]:
    """Return the end of L-BFGS, which stops where the gradient is below `_GRADIENT_TOLERANCE` or after 2,000 steps."""
    method = optax.lbfgs()
    value_and_slope = optax.value_and_grad_from_state(objective)

    def gradient_norm(slope):
        return jnp.sqrt(head.key.size) * optax.tree.norm(slope)

    def step(carry):
        head, state, _, steps = carry
        value, slope = value_and_slope(head, state=state)
        change, state = method.update(slope, state, head, value=value, grad=slope, value_fn=objective)
        return eqx.apply_updates(head, change), state, gradient_norm(slope), steps + 1

    def unfinished(carry):
        return (carry[2] > _GRADIENT_TOLERANCE) & (carry[3] < _LARGEST_STEPS)

    begin = (head, method.init(head), jnp.asarray(jnp.inf), jnp.asarray(0))  # pyright: ignore
    head, _, flatness, steps = jax.lax.while_loop(unfinished, step, begin)
    return head, flatness, steps


@public
def overlaps_of(head: Head, truth: Head) -> Overlaps:
    """Return the seven scalar products of a head with the truth and itself, over D.

    Args:
      head: the head.
      truth: the hidden directions.

    Returns:
      The overlaps, each of shape ().
    """
    k, v, along_k, along_v = (
        vector / jnp.sqrt(vector.size) for vector in (head.key, head.value, truth.key, truth.value)
    )
    return Overlaps(
        m_k=k @ along_k, q_k=k @ k, m_v=v @ along_v, q_v=v @ v, m_kv=k @ along_v, m_vk=v @ along_k, q_vk=k @ v
    )


@public
def fresh_risk(task: LocationTask, activation: Activation, overlaps: Overlaps) -> Float[Array, ""]:
    """Return the excess risk of a head on fresh prompts from its seven overlaps, an average over fixed quasi-random
    scores.

    Given the scores, values and label are jointly Gaussian, so the average over them is explicit.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      overlaps: all seven overlaps, each of shape ().

    Returns:
      The risk, shape (), with an absolute error of about 1e-3; `attention_risk` is more accurate where it applies.

    Source: [D26]; `Max` is derived here. Transformations: jit, vmap, grad.
    """
    # Behind the barrier the points are data: XLA would otherwise sort thousands of constants while it compiles.
    points = jax.lax.optimization_barrier(quasi_normals(2 * _static_length(task) + 1, _RISK_POINTS, 1)[0])
    geometry, noise = jnp.split(points[:, :-1], 2, axis=1)
    signal_scores = jax.vmap(task.signal_scores)(geometry, ndtr(points[:, -1]))
    o, ambient = overlaps, task.ambient
    score_variance = o.q_k - ambient * o.m_k**2
    score_value_covariance, value_variance = o.q_vk - ambient * o.m_k * o.m_vk, o.q_v - ambient * o.m_vk**2
    centred_scores = jnp.sqrt(score_variance) * noise
    weights = activation.weights(o.m_k * signal_scores + centred_scores)
    values = o.m_vk * signal_scores + score_value_covariance / score_variance * centred_scores
    residual_mean = o.m_kv / score_variance * centred_scores[:, 0] - jnp.sum(weights * values, axis=1)
    attention, squared_weights = jnp.mean(weights[:, 0]), jnp.mean(jnp.sum(weights**2, axis=1))
    alignment = o.m_v - score_value_covariance * o.m_kv / score_variance
    label_remainder = 1.0 - o.m_kv**2 / score_variance
    return (
        jnp.mean(residual_mean**2)
        + label_remainder
        - 2.0 * alignment * attention
        + (value_variance - score_value_covariance**2 / score_variance) * squared_weights
    )
