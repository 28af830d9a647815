"""Trainers for `simulate_erm`: full-batch gradient descent, and stochastic gradient descent in epochs.

Both minimise the same objective `Σ ½(y - f)² + ½r_k|k|² + ½r_v|v|²` as L-BFGS.
"""

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Int, PRNGKeyArray

from lib._checks import public
from lib.single_location.activations import Activation
from lib.single_location.erm import _GRADIENT_TOLERANCE, TrainingSet, _penalised_loss, _Ridge, _Trainer
from lib.single_location.overlaps import Head


@public
def full_batch_trainer(*, steps: int, gradient_tolerance: float = _GRADIENT_TOLERANCE) -> _Trainer:
    """Return a trainer by gradient descent with a line search.

    A step is halved until the objective falls by a quarter of what the gradient predicts, and then doubled for the
    next
    step. Scores and values are linear in the head, so trying a step costs no product with the tokens.

    Args:
      steps: largest number of steps.
      gradient_tolerance: the gradient that ends the descent, relative to the typical gradient √D of one prompt.

    Returns:
      The trainer; it returns the head and the number of steps. Transformations: none.
    """

    def train(
        activation: Activation, prompts: TrainingSet, ridge: _Ridge, head: Head, key: PRNGKeyArray
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


@public
def stochastic_trainer(*, epochs: int, batch: int, step_size: float) -> _Trainer:
    """Return a trainer by stochastic gradient descent on shuffled batches, with steps that decrease linearly to zero.

    Args:
      epochs: number of passes over the prompts, each with another shuffle.
      batch: number of prompts of a batch; the rest of an epoch is left out.
      step_size: first step, against the gradient summed over a batch, which is `batch` times the mean.

    Returns:
      The trainer; it returns the head and the number of steps. Transformations: none.
    """

    def train(
        activation: Activation, prompts: TrainingSet, ridge: _Ridge, head: Head, key: PRNGKeyArray
    ) -> tuple[Head, Int[Array, ""]]:
        n, dimension = prompts.labels.size, head.key.size
        batch_ridge = (ridge[0] * batch / n, ridge[1] * batch / n)
        rounds = n // batch

        def step(head, batch_and_size):
            rows, length = batch_and_size
            subset = TrainingSet(prompts.tokens[rows], prompts.labels[rows])
            slope = jax.grad(_penalised_loss(activation, subset, batch_ridge))(head)
            return jax.tree.map(
                lambda parameter, downhill: parameter - length * dimension * downhill, head, slope
            ), None

        def epoch(head, index):
            shuffled = jr.permutation(jr.fold_in(key, index), n)[: rounds * batch].reshape(rounds, batch)
            remaining = 1.0 - (index * rounds + jnp.arange(rounds)) / (epochs * rounds)
            return jax.lax.scan(step, head, (shuffled, step_size * remaining))[0], None

        head, _ = jax.lax.scan(epoch, head, jnp.arange(epochs))
        return head, jnp.asarray(epochs * rounds)

    return train
