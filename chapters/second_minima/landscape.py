"""The exact mean square as a function of the head, on prompts of one length: minima and curvatures.

A point of this landscape contains the entries of a head (U, v) that matter, see `head_points.py` of the chapter
`published_experiment`.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.optimize import minimize

from chapters.published_experiment.head_points import ENTRIES, SWAPPED_ENTRIES
from chapters.published_experiment.protocol import LAWS, WIDTH, published_task
from chapters.second_minima.parameters import SECOND_LENGTH
from lib.attention import Attention
from lib.icl import LinearRegression, PairAverage, ScoreTable

LOG_LENGTH = float(np.log(SECOND_LENGTH))
# Quadrature nodes for the softmax head's risk where many heads are evaluated: within 0.4 % of the default, which is the
# difference that other seeds of the frames make, at a twentieth of the cost.
NODES = {"frames": 64, "query_radii": 16, "task_radii": 2}
# Number of directions in which the mean square is constant: for linear attention, that of (U, v) ↦ (cU, v/c).
FLAT = {"softmax": 0, "linear": 1}
# Step of central differences of the gradient.
DIFFERENCE = 1e-4


def linear_square(task: LinearRegression, head: Attention) -> Float[Array, ""]:
    """Return the mean square of linear attention on prompts of `SECOND_LENGTH` tokens."""
    return 2 * task.linear_head_risk(head, SECOND_LENGTH)


def softmax_square(task: LinearRegression, head: Attention, *, average: PairAverage | None = None) -> Float[Array, ""]:
    """Return the mean square of softmax attention on prompts of `SECOND_LENGTH` tokens, by default on few nodes."""
    average = few_nodes() if average is None else average
    return 2 * task.finite_risk(head, LOG_LENGTH, average=average)


@cache
def few_nodes() -> PairAverage:
    """Return the nodes `NODES` as NumPy arrays, and make the table of the prompt length, which `finite_risk` caches.

    A program is traced faster if both exist.
    """
    with jax.ensure_compile_time_eval():
        ScoreTable.at(LOG_LENGTH)
        return jax.tree.map(np.asarray, PairAverage.of_frames(WIDTH - 1, **NODES))


SQUARES = {"softmax": softmax_square, "linear": linear_square}


def sharp_square(activation: str, task: LinearRegression, head: Attention) -> Float[Array, ""]:
    """Return the mean square on the library's default nodes, which is slower and more accurate."""
    if activation == "linear":
        return linear_square(task, head)
    return softmax_square(task, head, average=PairAverage.of_frames(WIDTH - 1))


def head_at(point: Float[Array, " n"] | Float[np.ndarray, " n"]) -> Attention:
    """Return the head at a point."""
    xp = np if isinstance(point, np.ndarray) else jnp
    bilinear, value = xp.split(point, [WIDTH * (WIDTH - 1)])
    return Attention(xp.pad(bilinear.reshape(WIDTH, WIDTH - 1), ((0, 0), (0, 1))), value[None])


def alignment(point: Float[np.ndarray, " n"], *, axis: int = 0) -> float:
    """Return the smaller cosine of the swapped parts of U and v with a principal axis, by default the first."""
    along = np.linalg.eigh(np.asarray(published_task().cov))[1][:, -1 - axis]
    swapped = np.asarray(point)[SWAPPED_ENTRIES].reshape(2, WIDTH - 1)
    return float(np.min(np.abs(swapped @ along) / np.linalg.norm(swapped, axis=1)))


def copies(activation: str, point: Float[np.ndarray, " n"]) -> Float[np.ndarray, "4 n"]:
    """Return the four heads with the same risk by symmetry; for linear attention those with ‖U‖ = ‖v‖."""
    point = np.array(point, float)
    if activation == "linear":
        sizes = [np.linalg.norm(part) for part in np.split(point, [WIDTH * (WIDTH - 1)])]
        ratio = np.sqrt(sizes[1] / sizes[0])
        point = np.append(point[: WIDTH * (WIDTH - 1)] * ratio, point[WIDTH * (WIDTH - 1) :] / ratio)
    mirror = np.ones(len(point))
    mirror[SWAPPED_ENTRIES] = -1.0
    return np.array([point, -point, mirror * point, -mirror * point])


def distance(activation: str, one: Float[np.ndarray, " n"], other: Float[np.ndarray, " n"]) -> float:
    """Return the distance of two heads as points, between their nearest copies."""
    return float(np.min(np.linalg.norm(copies(activation, one)[0] - copies(activation, other), axis=1)))


@jax.jit
def _softmax_at(
    task: LinearRegression, point: Float[Array, " n"], average: PairAverage
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    return jax.value_and_grad(lambda point: softmax_square(task, head_at(point), average=average))(point)


@partial(jax.jit, static_argnums=0)
def _linear_at(law: str, point: Float[Array, " n"]) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    return jax.value_and_grad(lambda point: linear_square(published_task(LAWS[law]), head_at(point)))(point)


@cache
def task_of(law: str) -> LinearRegression:
    """Return the task with these covariances, as NumPy arrays, so that one compiled program serves both."""
    with jax.ensure_compile_time_eval():
        return jax.tree.map(np.asarray, published_task(LAWS[law]))


def square_and_slope(
    activation: str, law: str, point: Float[Array, " n"] | Float[np.ndarray, " n"]
) -> tuple[Float[Array, ""], Float[Array, " n"]]:
    """Return the mean square at a point, and its gradient.

    Softmax, which is slow to compile, has one program for both covariances. Linear attention has one program for each,
    because rounding decides where along its flat direction a search ends.
    """
    return _linear_at(law, point) if activation == "linear" else _softmax_at(task_of(law), point, few_nodes())


def settle(
    activation: str, point: Float[np.ndarray, " n"], *, law: str = "corrected", family: Int[np.ndarray, " m"] = ENTRIES
) -> Float[np.ndarray, " n"]:
    """Return the minimum that a search from `point` finds, within a family of heads if one is given."""
    start = np.asarray(point)

    def among(entries):
        there = np.zeros(len(start))
        there[family] = entries
        return there

    def in_family(entries):
        square, slope = square_and_slope(activation, law, among(entries))
        return np.asarray(square), np.asarray(slope)[family]

    return among(minimize(in_family, start[family], jac=True, method="BFGS", options={"gtol": 1e-7}).x)


def hessian(activation: str, point: Float[np.ndarray, " n"], *, law: str = "corrected") -> Float[np.ndarray, "n n"]:
    """Return the Hessian of the mean square, by central differences of its gradient."""
    moves = DIFFERENCE * np.eye(len(point))
    slopes = [square_and_slope(activation, law, point + sign * move)[1] for move in moves for sign in (1, -1)]
    up, down = np.moveaxis(np.asarray(slopes).reshape(len(moves), 2, -1), 1, 0)
    differences = (up - down) / (2 * DIFFERENCE)
    return (differences + differences.T) / 2


def curvatures_at(
    activation: str, point: Float[np.ndarray, " n"], *, law: str = "corrected"
) -> Float[np.ndarray, " m"]:
    """Return the eigenvalues of the Hessian in increasing order, without those of flat directions."""
    eigenvalues = np.linalg.eigvalsh(hessian(activation, point, law=law))
    return np.delete(eigenvalues, np.argsort(np.abs(eigenvalues))[: FLAT[activation]])


def least_curvature(activation: str, point: Float[np.ndarray, " n"], *, law: str = "corrected") -> float:
    """Return the least eigenvalue of the Hessian, without flat directions."""
    return float(curvatures_at(activation, point, law=law)[0])
