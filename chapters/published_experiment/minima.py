"""The mean square of a head on prompts of one length, exact, as a landscape: its minima and how curved they are.

A point of the landscape is what matters of a head (U, v): the query's last coordinate is 0, so U lacks its last column.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from chapters.published_experiment.parameters import SECOND_LENGTH
from chapters.published_experiment.protocol import WIDTH, published_task
from lib.attention import Attention
from lib.icl import LinearRegression, pair_average

# Frames of queries that average the softmax head's risk: 64 are within 0.2 % of the default's 512, and eight times
# faster.
FRAMES = 64
# Directions in which the mean square of (U, v) cannot change: of linear attention (U, v) ↦ (cU, v/c).
FLAT = {"softmax": 0, "linear": 1}
# Central differences of the gradient.
DIFFERENCE = 1e-4


def linear_square(task: LinearRegression, head: Attention) -> Float[Array, ""]:
    """Mean square of linear attention on prompts of the length looked at."""
    return 2 * task.linear_risk(head, SECOND_LENGTH)


def softmax_square(task: LinearRegression, head: Attention) -> Float[Array, ""]:
    """The same of softmax attention."""
    average = pair_average(WIDTH - 1, frames=FRAMES)
    return 2 * task.finite_risk(head, float(np.log(SECOND_LENGTH)), average=average)


SQUARES = {"softmax": softmax_square, "linear": linear_square}


def points_of(heads: Attention) -> Float[np.ndarray, "*heads n"]:
    """The points of any number of heads."""
    bilinear, value = np.asarray(heads.bilinear)[..., : WIDTH - 1], np.asarray(heads.value)[..., -1, :]
    return np.concatenate([bilinear.reshape(*value.shape[:-1], -1), value], axis=-1)


def head_at(point: Float[Array, " n"] | Float[np.ndarray, " n"]) -> Attention:
    """The head at a point."""
    bilinear, value = jnp.split(jnp.asarray(point), [WIDTH * (WIDTH - 1)])
    return Attention(jnp.pad(bilinear.reshape(WIDTH, WIDTH - 1), ((0, 0), (0, 1))), value[None])


def alignment(point: Float[np.ndarray, " n"]) -> float:
    """How well the last row of U and v, the label's part left out, lie along the axis of most variance."""
    axis = np.linalg.eigh(np.asarray(published_task().cov))[1][:, -1]
    head = head_at(point)
    swapped = np.stack([head.bilinear[-1, :-1], head.value[-1, :-1]])
    return float(np.min(np.abs(swapped @ axis) / np.linalg.norm(swapped, axis=1)))


def _square_at(activation: str, point: Float[Array, " n"]) -> Float[Array, ""]:
    return SQUARES[activation](published_task(), head_at(point))


_square_and_slope = jax.jit(jax.value_and_grad(_square_at, 1), static_argnums=0)


def settle(activation: str, point: Float[np.ndarray, " n"]) -> tuple[Float[np.ndarray, " n"], float]:
    """The minimum that a head is near, and its mean square."""
    found = minimize(
        lambda point: [np.asarray(part) for part in _square_and_slope(activation, point)],
        point,
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    return found.x, float(found.fun)


def least_curvature(activation: str, point: Float[np.ndarray, " n"]) -> float:
    """The least eigenvalue of the Hessian, by central differences, when as many as are flat are set aside."""
    moves = DIFFERENCE * np.eye(len(point))
    slopes = [_square_and_slope(activation, point + sign * move)[1] for move in moves for sign in (1, -1)]
    up, down = np.moveaxis(np.asarray(slopes).reshape(len(moves), 2, -1), 1, 0)
    hessian = (up - down) / (2 * DIFFERENCE)
    eigenvalues = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    return float(np.min(np.delete(eigenvalues, np.argsort(np.abs(eigenvalues))[: FLAT[activation]])))
