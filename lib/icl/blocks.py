"""The heads that matter for regression, `U = diag(A, 0)` and `v = (0, b)`: limit, finite-prompt risk, best member.

Scores ⟨Ax_q, x_i⟩ do not see labels, so the average over tasks is closed and only the query's is left.
"""

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float

from lib._checks import as_float, require_float64
from lib.attention import Attention
from lib.finite_prompt import Scalar
from lib.icl.averages import QueryAverage, query_average
from lib.icl.linear_regression import ErrorTerms, LinearRegression
from lib.icl.score_table import ScoreTable, score_table
from lib.measures import covariance_root


class Blocks(eqx.Module):
    """The matrix A and the gain b of a block head; also the parameters of a flow."""

    matrix: Float[Array, "*rows d d"] = eqx.field(converter=as_float)
    gain: Float[Array, "*rows"] = eqx.field(converter=as_float)


def block_attention(A: Float[Array, "d d"] | Float[np.ndarray, "d d"], b: Scalar) -> Attention:
    """The head on R^{d+1} with `U = diag(A, 0)` and `V = (0, …, 0, b)`: its infinite prompt predicts b⟨w, SAx_q⟩."""
    matrix = as_float(A)
    d = matrix.shape[-1]
    value = jnp.zeros((1, d + 1), matrix.dtype).at[0, d].set(b)
    return Attention(jnp.pad(matrix, ((0, 1), (0, 1))), value)


def block_head(blocks: Blocks) -> Attention:
    """`block_attention` of both."""
    return block_attention(blocks.matrix, blocks.gain)


def line_head(point: Float[Array, "4"] | Float[np.ndarray, "4"]) -> Attention:
    """Any head for d = 1, by the weights its answer sees: a, c of covariate and label in scores, v, b in values."""
    a, c, v, b = as_float(point)
    return Attention(jnp.zeros((2, 2)).at[0, 0].set(a).at[1, 0].set(c), jnp.stack([v, b])[None])


def balanced_start(theta: Float[Array, "d p"] | Float[np.ndarray, "d p"], alpha: Scalar) -> Blocks:
    """[BB26, Eq. 9]: `A = α ΘΘᵀ/‖ΘΘᵀ‖_F` and b = α, so that ‖A‖_F = b, which the infinite flow keeps.

    [BB26, Theorem 5.1] asks for 0 < α < √2/(d^{1/4} ‖Σ‖_op).
    """
    gram = as_float(theta) @ as_float(theta).T
    return Blocks(alpha * gram / jnp.linalg.norm(gram), alpha)


def isotropic_blocks(dimension: int, norm: Scalar, gain: Scalar) -> Blocks:
    """`A = ‖A‖_F I/√d` and b. Where Σ = I, the flow of (A, b) from such a head is the flow of (‖A‖_F, b)."""
    return Blocks(norm * jnp.eye(dimension) / jnp.sqrt(dimension), gain)


def infinite_limit(task: LinearRegression) -> Blocks:
    """Where the infinite flow ends from a balanced start: `A* = tr(Σ⁻²)^{-1/4} Σ⁻¹`, `b* = tr(Σ⁻²)^{1/4}`.

    [BB26, Theorem 5.1], for S = Σ regular. Of the heads with bΣA = I it is the one with ‖A‖_F = b.
    """
    inverse = jnp.linalg.inv(task.cov)
    gain = jnp.sqrt(jnp.linalg.norm(inverse))
    return Blocks(inverse / gain, gain)


def block_risk(task: LinearRegression, blocks: Blocks, scores: ScoreTable, queries: QueryAverage) -> Float[Array, ""]:
    """`½ E(ŷ - y)²` of a block head on the prompts of `scores`, averaged over tasks in closed form.

    `2R_L = E_x[τ_w² b²‖SAx‖²/τ² (E ĝ² - P) - 2bτ_w² (xᵀSAx/τ) E ĝ + τ_w²‖x‖² + b²(τ_w² tr S + s²) P] + s²` with
    τ² = xᵀAᵀSAx. Equal to `finite_risk` up to the nodes of `queries`. With `radial_average(d)`, where S, S_q and A are
    multiples of the identity, its relative error is below 1e-9 for heads with ‖A‖ ≤ 2. With `query_average(d)` it is
    about 2e-4 at the best heads, and up to 4e-3 off them in three dimensions; more frames lower it. Scores with a
    standard deviation above 30 count as those of 30 (see `ScoreTable`). Derived here.
    """
    require_float64("block_risk", task.cov)
    root, query_root = covariance_root(task.cov), covariance_root(task.query_cov)
    power = task.task_scale**2
    value = blocks.gain**2 * (power * jnp.trace(task.cov) + task.noise_std**2)

    def given_query(node):
        query = query_root @ node
        tilt = root.T @ (blocks.matrix @ query)
        tau_squared = tilt @ tilt
        predicted = blocks.gain * root @ tilt
        miss = query - predicted
        terms = ErrorTerms(
            infinite=power * miss @ miss,
            shrink=power * predicted @ miss,
            along=power * predicted @ predicted / jnp.where(tau_squared > 0, tau_squared, 1.0),
            value=value,
        )
        return terms.square_error(scores.statistics(tau_squared))

    return 0.5 * (queries.weights @ jax.vmap(given_query)(queries.nodes) + task.noise_std**2)


def best_gain(
    task: LinearRegression, matrix: Float[Array, "d d"], scores: ScoreTable, queries: QueryAverage, *, near: Scalar
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """`argmin_b R_L` at the matrix A, and the risk there: closed, because `block_risk` is quadratic in b.

    From the slopes at the gains `near` and twice that, so that near the best gain a risk of 1e-20 keeps its digits:
    from values at 0 it would be lost in that of predicting 0.
    """

    def risk(shift):
        return block_risk(task, Blocks(matrix, (1 + shift) * near), scores, queries)

    (here, _), (slope, further) = jax.vmap(jax.value_and_grad(risk))(jnp.asarray([0.0, 1.0]))
    curvature = further - slope
    return near * (1 - slope / curvature), here - slope**2 / (2 * curvature)


def best_blocks(
    task: LinearRegression, log_length: float, *, start: Blocks | None = None, queries: QueryAverage | None = None
) -> Blocks:
    """`argmin_{A, b} R_L`, by BFGS on exact gradients, from `start` or from the limit of the infinite flow.

    A local search; started elsewhere it ends at the same risk where that was tried (see the tests). Judge what it finds
    by `block_risk` on more nodes: an error of the nodes moves the minimum's place, and its risk only to second order.
    """
    queries = query_average(task.dimension, frames=16, radii=24) if queries is None else queries
    flat, unflatten = jax.flatten_util.ravel_pytree(infinite_limit(task) if start is None else start)
    scores = score_table(log_length)

    def log_risk(flat):
        value, slope = _log_risk_and_slope(task, unflatten(jnp.asarray(flat)), scores, queries)
        return float(value), np.asarray(jax.flatten_util.ravel_pytree(slope)[0])

    found = scipy.optimize.minimize(log_risk, np.asarray(flat), jac=True, method="BFGS", options={"gtol": 1e-7})
    return unflatten(jnp.asarray(found.x))


@jax.jit
def _log_risk_and_slope(task, blocks, scores, queries):
    """The logarithm, because a noiseless risk of 1e-8 has gradients below any tolerance long before its minimum."""
    return jax.value_and_grad(lambda blocks: jnp.log(block_risk(task, blocks, scores, queries)))(blocks)
