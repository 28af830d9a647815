"""The mean square of a head on prompts of one length, exact, as a landscape: its minima and how curved they are."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from chapters.published_experiment.parameters import SECOND_LENGTH
from chapters.published_experiment.protocol import WIDTH
from lib.attention import Attention
from lib.icl import LinearRegression, pair_average, published_task

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


def alignment(point: np.ndarray) -> float:
    """How well the last row of U and v, the label's part left out, lie along the axis of most variance."""
    axis = np.linalg.eigh(np.asarray(published_task().cov))[1][:, -1]
    swapped = np.stack([point[-2 * WIDTH + 1 : -WIDTH], point[-WIDTH:-1]])
    return float(np.min(np.abs(swapped @ axis) / np.linalg.norm(swapped, axis=1)))


def _square_at(activation: str, point: Float[Array, " n"]) -> Float[Array, ""]:
    """The mean square of a head as a function of what matters of (U, v); the query's last coordinate is 0."""
    d = WIDTH - 1
    bilinear = jnp.pad(point[: WIDTH * d].reshape(WIDTH, d), ((0, 0), (0, 1)))
    return SQUARES[activation](published_task(), Attention(bilinear, point[WIDTH * d :][None]))


_square_and_slope = jax.jit(jax.value_and_grad(_square_at, 1), static_argnums=0)


def settle(activation: str, point: np.ndarray) -> tuple[np.ndarray, float]:
    """The minimum that a head is near, and its mean square."""
    found = minimize(
        lambda point: [np.asarray(part) for part in _square_and_slope(activation, point)],
        point,
        jac=True,
        method="BFGS",
        options={"gtol": 1e-9},
    )
    return found.x, float(found.fun)


def least_curvature(activation: str, point: np.ndarray) -> float:
    """The least eigenvalue of the Hessian, by central differences, when as many as are flat are set aside."""
    moves = DIFFERENCE * np.eye(len(point))
    slopes = [_square_and_slope(activation, point + sign * move)[1] for move in moves for sign in (1, -1)]
    up, down = np.moveaxis(np.asarray(slopes).reshape(len(moves), 2, -1), 1, 0)
    hessian = (up - down) / (2 * DIFFERENCE)
    eigenvalues = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    return float(np.min(np.delete(eigenvalues, np.argsort(np.abs(eigenvalues))[: FLAT[activation]])))
