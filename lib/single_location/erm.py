"""Simulated empirical risk minimisation: n prompts in dimension D, a minimiser, and the trained head.

A run minimises `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` [D26]. The replica equations must agree with this simulation, and
where they do not apply (weak ridges, several minima) it is the only source. The test risk needs no test set: it is a
function of the seven overlaps of the trained head.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from lib._checks import public, require_float64
from lib.single_location.activations import Activation
from lib.single_location.tasks import Head, LocationTask, Overlaps, _TrainingSet

_LARGEST_STEPS = 2000
# The gradient that ends L-BFGS, relative to the typical gradient √D of one prompt.
_GRADIENT_TOLERANCE = 1e-5
# Folded into the key of a run, the key of its trainer.
_TRAINER_STREAM = 3


class _ErmResult(eqx.Module):
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


def _random_start(truth: Head, key: PRNGKeyArray) -> Head:
    """Return a start at two independent standard normal vectors."""
    key_key, value_key = jr.split(key)
    size = truth.key.shape
    return Head(jr.normal(key_key, size, truth.key.dtype), jr.normal(value_key, size, truth.key.dtype))


_Ridge = tuple[float | Float[Array, ""], float | Float[Array, ""]]
# Fits a head to prompts from a given head, with a random key; returns the fitted head and the number of steps.
_Trainer = Callable[[Activation, _TrainingSet, _Ridge, Head, PRNGKeyArray], tuple[Head, Int[Array, ""]]]


@public
def simulate_erm(
    task: LocationTask,
    activation: Activation,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float,
    ridge: _Ridge,
    dimension: int,
    seeds: Sequence[int],
    start: _Start | None = None,
    descent_steps: int | None = None,
    gradient_tolerance: float = _GRADIENT_TOLERANCE,
    trainer: _Trainer | None = None,
    batch: int = 1,
) -> _ErmResult:
    """Return the result of one training run per seed on `round(alpha * dimension)` fresh prompts, stacked.

    A run minimises `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²`, the loss of `replica`, from `start` to the bottom of its
    valley, by L-BFGS unless `descent_steps` or `trainer` is given. Its key is its seed folded with the dimension.
    Memory and a step both cost alpha·L·D² numbers. Compiled once for all seeds.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      noise_std: standard deviation Δ of the label noise, shape (), Δ ≥ 0.
      alpha: prompts per dimension n/D, positive.
      ridge: ridges $(r_k, r_v)$.
      dimension: dimension D.
      seeds: the seeds, one per run.
      start: a function of the hidden directions, a `Head`, and a key that returns the first head: by default two
        independent standard normal vectors. `lambda truth, key: truth` starts at the hidden directions themselves.
      descent_steps: largest number of steps of gradient descent with a line search.
      gradient_tolerance: the gradient that ends this descent, relative to the typical gradient √D of one prompt.
      trainer: a function that fits the head: of activation, prompts, ridge, first head and key, it returns the head and
        the number of steps.
      batch: number of runs that are computed at once. 1 is fastest on a CPU, where a run fills the cores and the
        memory.

    Returns:
      The results `.risk` (excess risk on fresh prompts), `.overlaps`, `.train_loss` (mean of `½(y - f)²` over the
      training prompts), `.objective` (the minimised sum over D), `.flatness` (norm of its gradient, relative to a
      typical gradient of one prompt) and `.steps`, each of shape (seeds,).

    Raises:
      ValueError: if float64 is off, if the length is traced or above 500, or for `descent_steps` with a `trainer`.

    Source: the setting of [D26].
    """
    require_float64("simulate_erm", task.snr)
    options = {"noise_std": noise_std, "alpha": alpha, "ridge": ridge, "dimension": dimension}
    if descent_steps is not None:
        if trainer is not None:
            raise ValueError(
                "`simulate_erm` takes `descent_steps`, or a `trainer` that counts its own steps, not both."
            )
        trainer = _descent(descent_steps, gradient_tolerance)

    def train(key):
        return _train_once(task, activation, **options, start=start or _random_start, trainer=trainer, key=key)

    keys = jnp.stack([jr.fold_in(jr.key(seed), dimension) for seed in seeds])
    batch_size = None if batch == 1 else batch
    return jax.jit(lambda keys: jax.lax.map(train, keys, batch_size=batch_size))(keys)


def _train_once(
    task: LocationTask,
    activation: Activation,
    *,
    noise_std: float | Float[Array, ""],
    alpha: float,
    ridge: _Ridge,
    dimension: int,
    start: _Start,
    trainer: _Trainer | None,
    key: PRNGKeyArray,
) -> _ErmResult:
    """Return the result of one run of `simulate_erm`."""
    truth_key, prompt_key, start_key = jr.split(key, 3)
    truth = Head.orthogonal(dimension, key=truth_key)
    prompts = task.draw(truth, round(alpha * dimension), noise_std=noise_std, key=prompt_key)
    objective = _penalised_loss(activation, prompts, ridge)
    start_head = start(truth, start_key)
    if trainer is None:
        head, _, steps = _minimise(objective, start_head)
    else:
        head, steps = trainer(activation, prompts, ridge, start_head, jr.fold_in(key, _TRAINER_STREAM))
    overlaps = head.overlaps(truth)
    return _ErmResult(
        risk=task.fresh_risk(activation, overlaps),
        overlaps=overlaps,
        train_loss=_train_loss(activation, prompts, head),
        objective=objective(head),
        flatness=jnp.sqrt(dimension) * optax.tree.norm(jax.grad(objective)(head)),
        steps=steps,
    )


def _penalised_loss(activation: Activation, prompts: _TrainingSet, ridge: _Ridge) -> Callable[[Head], Float[Array, ""]]:
    """Return the function `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` over D of the head."""

    def objective(head):
        penalty = 0.5 * (ridge[0] * head.key @ head.key + ridge[1] * head.value @ head.value)
        return (prompts.labels.size * _train_loss(activation, prompts, head) + penalty) / head.key.size

    return objective


def _train_loss(activation: Activation, prompts: _TrainingSet, head: Head) -> Float[Array, ""]:
    """Return half the mean squared error of a head on the prompts."""
    return 0.5 * jnp.mean((prompts.labels - prompts.outputs(activation, head)) ** 2)


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


def _descent(steps: int, gradient_tolerance: float) -> _Trainer:
    """Return a trainer by gradient descent with a line search.

    A step is halved until the objective falls by a quarter of what the gradient predicts, and then doubled for the
    next step. Scores and values are linear in the head, so trying a step costs no product with the tokens.
    """

    def train(
        activation: Activation, prompts: _TrainingSet, ridge: _Ridge, head: Head, key: PRNGKeyArray
    ) -> tuple[Head, Int[Array, ""]]:
        dimension = head.key.size
        tokens = prompts.tokens.reshape(-1, dimension) / jnp.sqrt(dimension)
        ridges = jnp.asarray(ridge)

        def loss(fields):
            scores, values = (part.reshape(prompts.tokens.shape[:2]) for part in fields.T)
            return 0.5 * jnp.sum((prompts.labels - jnp.sum(activation.weights(scores) * values, axis=1)) ** 2)

        def objective(head_matrix, fields):
            return loss(fields) + 0.5 * jnp.sum(ridges * head_matrix**2)

        def step(carry):
            head_matrix, fields, step_size, _, count = carry
            slope = tokens.T @ jax.grad(loss)(fields) + ridges * head_matrix
            field_change, decrease, current = tokens @ slope, jnp.sum(slope**2), objective(head_matrix, fields)

            def too_long(step_size):
                return (
                    objective(head_matrix - step_size * slope, fields - step_size * field_change)
                    > current - 0.25 * step_size * decrease
                )

            # below a millionth the fall is lost in rounding
            step_size = jax.lax.while_loop(
                lambda step_size: too_long(step_size) & (step_size > 1e-6),
                lambda step_size: step_size / 2,
                2 * step_size,
            )
            flatness = jnp.sqrt(decrease / dimension)
            return head_matrix - step_size * slope, fields - step_size * field_change, step_size, flatness, count + 1

        def unfinished(carry):
            return (carry[3] > gradient_tolerance) & (carry[4] < steps)

        head_matrix = jnp.stack([head.key, head.value], axis=1)
        begin = (head_matrix, tokens @ head_matrix, jnp.asarray(0.5), jnp.asarray(jnp.inf), jnp.asarray(0))
        head_matrix, _, _, _, count = jax.lax.while_loop(unfinished, step, begin)
        return Head(*head_matrix.T), count

    return train
