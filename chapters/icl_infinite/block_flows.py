"""Gradient flows of the infinite-prompt risk on block heads: paths, rates at the limit and arrival times.

The risk is the polynomial `½ tr[(bΣA - I) Σ (bΣA - I)ᵀ]`; no prompt is sampled.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from lib.batching import in_batches
from lib.flow import gradient_flow
from lib.icl import Blocks, LinearRegression

# Relative tolerance of one step of the integrator; the absolute tolerance is a hundredth of it.
RTOL = 1e-10
# Largest relative distance to the limit at the end of a run, after up to 10⁵ steps.
REACHED = 1e-6
# Number of runs that are integrated together, so that studies of different sizes share a compilation.
BATCH = 8
# A run ends when the slowest mode has decayed by the factor e^-25.
DECAY_EXPONENT = 25.0


@dataclass(frozen=True)
class Flow:
    """One run of the flow: task, start, predicted limit, and the path with its risks."""

    task: LinearRegression
    start: Blocks
    limit: Blocks
    times: Float[np.ndarray, " n"]
    path: Blocks
    risk: Float[np.ndarray, " n"]

    @property
    def distance(self) -> Float[np.ndarray, " n"]:
        """Return the distance of the path to (A*, b*), relative to the size of (A*, b*)."""
        return distance_between(self.path, self.limit) / self.size

    @property
    def size(self) -> float:
        """Return `‖(A*, b*)‖`."""
        return float(np.sqrt(np.sum(np.asarray(self.limit.matrix) ** 2) + float(self.limit.gain) ** 2))

    @property
    def drift(self) -> Float[np.ndarray, " n"]:
        """Return the change of `‖A‖² - b²` since the start, relative to b*²."""
        invariant = np.sum(np.asarray(self.path.matrix) ** 2, axis=(-1, -2)) - np.asarray(self.path.gain) ** 2
        return np.abs(invariant - _invariant(self.start)) / float(self.limit.gain) ** 2

    @property
    def relative_risk(self) -> Float[np.ndarray, " n"]:
        """Return the risk divided by `½ tr Σ`, the risk of predicting 0 and of every saddle."""
        return self.risk / (float(jnp.trace(self.task.cov)) / 2)


def _invariant(blocks: Blocks) -> float:
    return float(jnp.sum(blocks.matrix**2) - blocks.gain**2)


def distance_between(path: Blocks, point: Blocks) -> Float[np.ndarray, "..."]:
    """Return `√(‖A - A'‖² + (b - b')²)`, the distance of each head (A, b) of a path to a point (A', b')."""
    squares = np.sum(np.asarray(path.matrix - point.matrix) ** 2, axis=(-1, -2))
    return np.asarray(np.sqrt(squares + np.asarray(path.gain - point.gain) ** 2))


def solve_flows(
    tasks: list[LinearRegression], starts: list[Blocks], times: list[Float[np.ndarray, " n"]]
) -> list[Flow]:
    """Return the flow of the infinite risk for each task, start and array of times."""
    covs, matrices = np.stack([task.cov for task in tasks]), np.stack([start.matrix for start in starts])
    gains, limits = np.stack([start.gain for start in starts]), [Blocks.infinite_limit(task) for task in tasks]
    paths, risks = in_batches(_integrate, covs, matrices, gains, np.stack(times), batch=BATCH)
    separate = [jax.tree.map(lambda leaf, row=row: leaf[row], paths) for row in range(len(tasks))]
    return [Flow(*run) for run in zip(tasks, starts, limits, times, separate, risks, strict=True)]


@jax.jit
@jax.vmap
def _integrate(cov, matrix, gain, times):
    """Return the path and its risks, for one run per entry of the leading axis."""

    def risk(blocks):
        return LinearRegression(cov).infinite_risk(Blocks.head(blocks))

    path = gradient_flow(risk, Blocks(matrix, gain), times, rtol=RTOL, atol=RTOL / 100).params
    return path, jax.vmap(risk)(path)


def recording_times(task: LinearRegression, points: int) -> Float[np.ndarray, " points"]:
    """Return time 0 and a geometric progression until the slowest mode, of rate `b*² σ_min³` or more, has decayed.

    A small start first has to leave the saddle, at the rate `√tr Σ⁴`.
    """
    eigenvalues = np.linalg.eigvalsh(task.cov)
    slow, escape = float(Blocks.infinite_limit(task).gain) ** 2 * eigenvalues[0] ** 3, np.sqrt(np.sum(eigenvalues**4))
    return np.append(0.0, np.geomspace(0.03 / escape, DECAY_EXPONENT * (1 / slow + 1 / escape), points - 1))


def decay_rates(task: LinearRegression) -> Float[np.ndarray, " n"]:
    """Return the rates of the flow linearised at (A*, b*), ascending; the first is 0, along the valley `bA = Σ⁻¹`.

    They are the eigenvalues of the Hessian of the infinite risk on block heads, by automatic differentiation.
    """
    return np.linalg.eigvalsh(np.asarray(_hessian(task, Blocks.infinite_limit(task))))


@jax.jit
def _hessian(task: LinearRegression, blocks: Blocks) -> Float[Array, "n n"]:
    flat, as_blocks = ravel_pytree(blocks)
    return jax.hessian(lambda entries: task.infinite_risk(Blocks.head(as_blocks(entries))))(flat)


def slowest_rate(eigenvalues: Float[np.ndarray, " d"]) -> float:
    """Return the slowest rate at (A*, b*) for a Σ of these eigenvalues, by the closed form of `rates-at-the-limit`.

    The entry `A_ij` decays at `b*² σ_i² σ_j` where `i ≠ j`; the diagonal and b decay together, at the eigenvalues of
    `b*² diag(σ_i³) + b*⁻² (√(σ_i σ_j))_ij`.
    """
    square = np.sqrt(np.sum(eigenvalues**-2.0))
    alone = square * np.outer(eigenvalues**2, eigenvalues)
    together = square * np.diag(eigenvalues**3) + np.sqrt(np.outer(eigenvalues, eigenvalues)) / square
    off_diagonal = alone[~np.eye(len(eigenvalues), dtype=bool)]
    return float(min(np.linalg.eigvalsh(together)[0], off_diagonal.min(initial=np.inf)))


def first_below(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """Return the time after which `values` stay below `level`, by log-linear interpolation; NaN if they do not."""
    if values[-1] >= level:
        return float("nan")
    i = int(np.flatnonzero(values >= level)[-1])
    fraction = np.log(values[i] / level) / np.log(values[i] / values[i + 1])
    return float(times[i] + fraction * (times[i + 1] - times[i]))


def published_bounds(cov: Float[Array, "d d"] | Float[np.ndarray, "d d"]) -> tuple[float, float]:
    """Return the published bounds on α: `√2/(d^{1/4}‖Σ‖)` of [BB26, Thm 5.1], `√2/(d^{1/4}‖Σ‖^{1/2})` of [ZFB24]."""
    norm = np.linalg.eigvalsh(cov)[-1]
    common = np.sqrt(2) / cov.shape[-1] ** 0.25
    return common / norm, common / np.sqrt(norm)


def sharp_bound(cov: Float[Array, "d d"] | Float[np.ndarray, "d d"]) -> float:
    """Return `√(2/‖Σ‖)`, the largest bound on α below which every balanced start is better than predicting 0."""
    return float(np.sqrt(2 / np.linalg.eigvalsh(cov)[-1]))


def toeplitz(d: int) -> Float[np.ndarray, "d d"]:
    """Return the matrix with entries `0.5^|i-j|`."""
    return 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
