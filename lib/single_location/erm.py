"""Empirical risk minimisation as one would run it: n prompts in dimension D, L-BFGS, and what it found.

The simulation that the replica equations must agree with, and where they are silent (weak ridges, several minima)
the only witness. Test risk needs no test set: of a trained head it is a function of seven overlaps.
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

from lib._checks import require_float64
from lib.single_location.activations import Activation
from lib.single_location.overlaps import Head, Overlaps
from lib.single_location.quasi_random import quasi_normals
from lib.single_location.tasks import LocationTask, static_length

LARGEST_STEPS = 2000
# The gradient that ends L-BFGS, relative to the typical gradient √D of one prompt.
GRADIENT_TOLERANCE = 1e-5
RISK_POINTS = 2**14
# Folded into the key of a run, the key of its trainer.
TRAINER_STREAM = 3


class TrainingSet(eqx.Module):
    """n prompts of L tokens in R^D, the hidden token first, and their answers."""

    tokens: Float[Array, "n L D"]
    labels: Float[Array, " n"]


class ErmResult(eqx.Module):
    """What training found: test risk, overlaps, mean training loss `½(y - f)²`, and whether and when it was done.

    `objective` is the minimised sum over D; `flatness` is the size of its gradient where training stopped.
    """

    risk: Float[Array, ""]
    overlaps: Overlaps
    train_loss: Float[Array, ""]
    objective: Float[Array, ""]
    flatness: Float[Array, ""]
    steps: Int[Array, ""]


Start = Callable[[Head, PRNGKeyArray], Head]


def informed(truth: Head, key: PRNGKeyArray) -> Head:
    """A start at the hidden directions themselves."""
    return truth


def uninformed(truth: Head, key: PRNGKeyArray) -> Head:
    """A start at two independent standard normal vectors of length √D, which know nothing."""
    key_key, value_key = jr.split(key)
    size = truth.key.shape
    return Head(jr.normal(key_key, size, truth.key.dtype), jr.normal(value_key, size, truth.key.dtype))


Ridge = tuple[float | Float[Array, ""], float | Float[Array, ""]]
# Fits a head to prompts from where it is, with random keys of its own: the head, and after how many steps.
Trainer = Callable[[Activation, TrainingSet, Ridge, Head, PRNGKeyArray], tuple[Head, Int[Array, ""]]]


def simulate_erm(
    task: LocationTask,
    activation: Activation,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float,
    ridge: Ridge,
    dimension: int,
    start: Start,
    trainer: Trainer | None = None,
    key: PRNGKeyArray,
) -> ErmResult:
    """One training run: `round(alpha * dimension)` fresh prompts, fitted from `start` to the bottom of its valley.

    Minimises `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²`, the loss of `replica`, by L-BFGS or by `trainer`. Memory and a step
    of L-BFGS both cost alpha·L·D² numbers. `simulate_seeds` repeats it. Needs float64.
    """
    require_float64("simulate_erm", task.snr)
    truth_key, prompt_key, start_key = jr.split(key, 3)
    truth = draw_truth(dimension, key=truth_key)
    prompts = draw_prompts(task, truth, round(alpha * dimension), noise_std=noise_std, key=prompt_key)
    objective = penalised_loss(activation, prompts, ridge)
    start_head = start(truth, start_key)
    if trainer is None:
        head, _, steps = minimise(objective, start_head)
    else:
        head, steps = trainer(activation, prompts, ridge, start_head, jr.fold_in(key, TRAINER_STREAM))
    overlaps = overlaps_of(head, truth)
    return ErmResult(
        risk=fresh_risk(task, activation, overlaps),
        overlaps=overlaps,
        train_loss=train_loss(activation, prompts, head),
        objective=objective(head),
        flatness=jnp.sqrt(dimension) * optax.tree.norm(jax.grad(objective)(head)),
        steps=steps,
    )


def simulate_seeds(
    task: LocationTask, activation: Activation, *, dimension: int, seeds: Sequence[int], batch: int = 1, **options: Any
) -> ErmResult:
    """`simulate_erm` once a seed, one after another, stacked; the key of a run is its seed folded with the dimension.

    `options` is the rest of what `simulate_erm` takes, but for `key`. Compiled once for all seeds. Needs float64.
    """
    keys = jnp.stack([jr.fold_in(jr.key(seed), dimension) for seed in seeds])

    def train(key):
        return simulate_erm(task, activation, dimension=dimension, **options, key=key)

    batch_size = None if batch == 1 else batch
    return jax.jit(lambda keys: jax.lax.map(train, keys, batch_size=batch_size))(keys)


def penalised_loss(activation: Activation, prompts: TrainingSet, ridge: Ridge) -> Callable[[Head], Float[Array, ""]]:
    """`Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` over D, as a function of the head."""

    def objective(head):
        penalty = 0.5 * (ridge[0] * head.key @ head.key + ridge[1] * head.value @ head.value)
        return (prompts.labels.size * train_loss(activation, prompts, head) + penalty) / head.key.size

    return objective


def draw_truth(dimension: int, *, key: PRNGKeyArray) -> Head:
    """Two orthogonal directions of squared norm D."""
    frame, _ = jnp.linalg.qr(jr.normal(key, (dimension, 2)))
    return Head(*(jnp.sqrt(dimension) * frame.T))


def draw_prompts(
    task: LocationTask, truth: Head, n: int, *, noise_std: float | Float[Array, ""], key: PRNGKeyArray
) -> TrainingSet:
    """`n` prompts of the task. Hidden tokens come first, which no head of this family can notice."""
    token_key, geometry_key, level_key, noise_key = jr.split(key, 4)
    length, dimension = static_length(task), truth.key.size
    signal_scores = jax.vmap(task.signal_scores)(jr.normal(geometry_key, (n, length)), jr.uniform(level_key, (n,)))
    tokens = jr.normal(token_key, (n, length, dimension))
    along_key = signal_scores / jnp.sqrt(dimension) - task.ambient * tokens @ truth.key / dimension
    tokens = tokens + along_key[..., None] * truth.key
    labels = tokens[:, 0] @ truth.value / jnp.sqrt(dimension) + noise_std * jr.normal(noise_key, (n,))
    return TrainingSet(tokens, labels)


def head_output(activation: Activation, prompts: TrainingSet, head: Head) -> Float[Array, " n"]:
    """The head's answers, `Σ_l s_l(χ) z_l`."""
    projections = prompts.tokens @ jnp.stack([head.key, head.value], axis=1) / jnp.sqrt(head.key.size)
    return jnp.sum(activation.weights(projections[..., 0]) * projections[..., 1], axis=1)


def train_loss(activation: Activation, prompts: TrainingSet, head: Head) -> Float[Array, ""]:
    """Half the mean square of what is missed on the prompts."""
    return 0.5 * jnp.mean((prompts.labels - head_output(activation, prompts, head)) ** 2)


def minimise(
    objective: Callable[[Head], Float[Array, ""]], head: Head
) -> tuple[Head, Float[Array, ""], Int[Array, ""]]:
    """L-BFGS until the gradient is `GRADIENT_TOLERANCE`: where it ended, how flat it is there, and after how many steps."""
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
        return (carry[2] > GRADIENT_TOLERANCE) & (carry[3] < LARGEST_STEPS)

    begin = (head, method.init(head), jnp.asarray(jnp.inf), jnp.asarray(0))  # pyright: ignore
    head, _, flatness, steps = jax.lax.while_loop(unfinished, step, begin)
    return head, flatness, steps


def overlaps_of(head: Head, truth: Head) -> Overlaps:
    """The seven scalar products, over D."""
    k, v, along_k, along_v = (
        vector / jnp.sqrt(vector.size) for vector in (head.key, head.value, truth.key, truth.value)
    )
    return Overlaps(
        m_k=k @ along_k, q_k=k @ k, m_v=v @ along_v, q_v=v @ v, m_kv=k @ along_v, m_vk=v @ along_k, q_vk=k @ v
    )


def fresh_risk(task: LocationTask, activation: Activation, overlaps: Overlaps) -> Float[Array, ""]:
    """Excess risk on fresh prompts from the seven overlaps: an average over scores alone, on fixed points.

    Given the scores, values and answer are jointly Gaussian, so their part is done by hand [D26; for `Max` derived
    here]. The points are quasi-random, good to about 1e-3; `attention_risk` has more digits where it applies.
    """
    # Behind the barrier the points are data: XLA would otherwise sort thousands of constants while it compiles.
    points = jax.lax.optimization_barrier(quasi_normals(2 * static_length(task) + 1, RISK_POINTS, 1)[0])
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
