"""Gradient descent on the population risk of [D26], for two vectors of $R^D$; the risk depends on seven overlaps only.

The overlaps are those of k and v with k*, v* and each other, also off the manifold on which the cross overlaps vanish.
The gradient stays in the span of the four vectors.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib.single_location.activations import Activation
from lib.single_location.tasks import Head, LocationTask, Overlaps


class HeadTrajectory(eqx.Module):
    """The recorded steps of a descent.

    Attributes:
      head: the head at each record.
      overlaps: its seven overlaps.
      risk: their excess risk.
    """

    head: Head
    overlaps: Overlaps
    risk: Float[Array, "*records"]


def descend_population(
    task: LocationTask, activation: Activation, start: Head, truth: Head, *, step_size: float, steps: int, every: int
) -> HeadTrajectory:
    """Return the trajectory of plain gradient descent on the excess risk as a function of k and v.

    Args:
      task: the task, with concrete length L ≤ 500.
      activation: the activation of the head.
      start: the first head, shape (D,) each.
      truth: the hidden directions.
      step_size: step size in units of D, so that what a step changes does not depend on the dimension.
      steps: number of steps.
      every: number of steps between records.

    Returns:
      The start, the head after each `every` steps, with overlaps and risk; leading axis `steps // every + 1`. The
      risk is `task.fresh_risk`, an average over fixed quasi-random scores, good to about 1e-3.
    """
    count = steps // every

    def risk(head):
        return task.fresh_risk(activation, head.overlaps(truth))

    def step(head, _):
        gradient = jax.grad(risk)(head)
        return jax.tree.map(
            lambda vector, gradient_part: vector - step_size * vector.size * gradient_part, head, gradient
        ), None

    def descend_and_record(head, _):
        return jax.lax.scan(step, head, None, length=every)[0], head

    @jax.jit  # inside, because the task must stay known: its length lays out the tokens
    def trajectory(start):
        last, heads = jax.lax.scan(descend_and_record, start, None, length=count)
        heads = jax.tree.map(lambda recorded, last_record: jnp.concatenate([recorded, last_record[None]]), heads, last)
        return jax.lax.map(lambda head: HeadTrajectory(head, head.overlaps(truth), risk(head)), heads)

    return trajectory(start)
