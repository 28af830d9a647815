"""Gradient descent on the population risk of [D26]: two vectors of R^D that move, and seven overlaps that tell all.

The risk depends on k and v through their overlaps with k*, v* and each other alone, also off the manifold on which the
cross overlaps vanish; so does its gradient, which stays in the span of the four vectors.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lib._checks import require_count, require_float64
from lib.single_location.activations import Activation
from lib.single_location.erm import fresh_risk, overlaps_of
from lib.single_location.overlaps import Head, Overlaps
from lib.single_location.tasks import LocationTask


class HeadTrajectory(eqx.Module):
    """Where a descent was, one entry a recorded step: the head, its seven overlaps, and their excess risk."""

    head: Head
    overlaps: Overlaps
    risk: Float[Array, "*records"]


def descend_population(
    task: LocationTask, activation: Activation, start: Head, truth: Head, *, step_size: float, steps: int, every: int
) -> HeadTrajectory:
    """Plain gradient descent on the excess risk as a function of k and v, recorded at the start and each `every` steps.

    `step_size` is in units of D, so that what a step changes does not depend on the dimension. The risk is
    `fresh_risk` of the seven overlaps, an average over fixed quasi-random scores. Needs float64.
    """
    require_float64("descend_population", start.key)
    count = require_count("descend_population", "steps // every", steps // every, "a path has records.")

    def risk(head):
        return fresh_risk(task, activation, overlaps_of(head, truth))

    def step(head, _):
        gradient = jax.grad(risk)(head)
        return jax.tree.map(
            lambda vector, gradient_part: vector - step_size * vector.size * gradient_part, head, gradient
        ), None

    def descend_and_record(head, _):
        return jax.lax.scan(step, head, None, length=every)[0], HeadTrajectory(
            head, overlaps_of(head, truth), risk(head)
        )

    @jax.jit  # inside, because the task must stay known: its length lays out the tokens
    def trajectory(start):
        last, path = jax.lax.scan(descend_and_record, start, None, length=count)
        end = HeadTrajectory(last, overlaps_of(last, truth), risk(last))
        return jax.tree.map(lambda recorded, last_record: jnp.concatenate([recorded, last_record[None]]), path, end)

    return trajectory(start)
