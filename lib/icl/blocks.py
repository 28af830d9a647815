"""Block heads `U = diag(A, 0)` and `v = (0, b)` for regression: their limit, finite-prompt risk and best member.

[BB26, Section 5] trains them. Their scores $⟨Ax_q, x_i⟩$ do not depend on labels, so that the average over tasks has a
closed form and only that over queries is left: `2R_L = E_x[infinite + 2P shrink + (Q - P) along + P value] + s²` with
the participation P and the score error Q at τ² = xᵀAᵀSAx. `block_risk` computes it with these names; the last functions
of the module are its limit for long prompts.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float

from lib._checks import as_array, as_float, public, require_float64
from lib._namespace import jitted, known, namespace, product
from lib._types import AnyArray, Scalar
from lib.attention import Attention
from lib.icl.averages import QueryAverage
from lib.icl.regression import LinearRegression, _ErrorTerms
from lib.icl.score_table import ScoreTable
from lib.measures import _covariance_root


class Blocks(eqx.Module):
    """The parameters of a block head: a matrix and a gain.

    Attributes:
      matrix: A, shape (d, d), or (..., d, d) for a stack, such as a trajectory.
      gain: b, shape (), or (...).
    """

    matrix: Float[Array, "*rows d d"] = eqx.field(converter=as_float)
    gain: Float[Array, "*rows"] = eqx.field(converter=as_float)

    @classmethod
    @public
    def balanced(cls, theta: Float[AnyArray, "d p"], alpha: Scalar) -> "Blocks":
        """Return `A = α ΘΘᵀ/‖ΘΘᵀ‖_F` and b = α, so that ‖A‖_F = b, which the infinite flow keeps.

        Args:
          theta: Θ, shape (d, p), not 0.
          alpha: α, shape (). [BB26, Theorem 5.1] needs $0 < α < √2/(d^{1/4} ‖Σ‖)$.

        Returns:
          A and b.

        Source: [BB26, Eq. 9]. Transformations: jit, vmap, grad.
        """
        theta = known(as_float(theta))
        gram = product(theta, theta.T)
        matrix = known(alpha) * gram / namespace(gram).linalg.norm(gram)
        return cls(matrix.astype(jnp.result_type(alpha, gram)), alpha)

    @classmethod
    @public
    def isotropic(cls, dimension: int, norm: Scalar, gain: Scalar) -> "Blocks":
        """Return `A = norm · I/√d` and b.

        For Σ = I the flow of (A, b) from such a head is the flow of (‖A‖_F, b).

        Args:
          dimension: d.
          norm: ‖A‖_F, with the sign of A, shape ().
          gain: b, shape ().

        Returns:
          A and b.

        Transformations: jit, vmap, grad.
        """
        return cls(known(norm) * np.eye(dimension) / np.sqrt(dimension), gain)

    @classmethod
    @public
    def infinite_limit(cls, task: LinearRegression) -> "Blocks":
        """Return the limit of the infinite flow from a balanced start: `A* = tr(Σ⁻²)^{-1/4} Σ⁻¹`, `b* = tr(Σ⁻²)^{1/4}`.

        It is the head with ‖A‖_F = b among those with bΣA = I.

        Args:
          task: the task, whose `cov` Σ is invertible and equal to `query_cov`.

        Returns:
          A* and b*.

        Raises:
          numpy.linalg.LinAlgError: if a known Σ is singular.

        Source: [BB26, Theorem 5.1]. Transformations: jit, vmap, grad.
        """
        xp = namespace(cov := known(task.cov))
        inverse = xp.linalg.inv(cov)
        gain = xp.sqrt(xp.linalg.norm(inverse))
        return cls(inverse / gain, gain)

    @classmethod
    @public
    def best(
        cls,
        task: LinearRegression,
        log_length: float,
        *,
        start: "Blocks | None" = None,
        queries: QueryAverage | None = None,
    ) -> "Blocks":
        """Return `argmin_{A, b} R_L`, by BFGS on exact gradients.

        It is the best of these heads; heads with other entries are not searched. For covariances cov = I the least risk
        over heads A = ωI is faster with `best_values(task, [ω], log_length)`. The search is local: from other starts
        it ended at the same risk where that was tried (see the tests). Evaluate the result by `block_risk` on more
        nodes: an error of the nodes moves the place of the minimum, and its risk only to second order.

        Args:
          task: the task; concrete, because SciPy does the search.
          log_length: natural logarithm of the prompt length, 0 ≤ log_length ≤ 330.
          start: where the search starts; the limit of the infinite flow by default.
          queries: nodes for the average over queries; by default `QueryAverage.of_frames(d, frames=16, radii=24)`.

        Returns:
          A and b. The search takes two seconds to compile.

        Raises:
          ValueError: if float64 is off.
        """
        queries = QueryAverage.of_frames(task.dimension, frames=16, radii=24) if queries is None else queries
        flat, unflatten = jax.flatten_util.ravel_pytree(cls.infinite_limit(task) if start is None else start)
        scores = ScoreTable.at(log_length)

        def log_risk(flat):
            value, slope = _log_risk_and_slope(task, unflatten(as_array(flat)), scores, queries)
            return float(value), np.asarray(jax.flatten_util.ravel_pytree(slope)[0])

        result = scipy.optimize.minimize(log_risk, np.asarray(flat), jac=True, method="BFGS", options={"gtol": 1e-7})
        return unflatten(as_array(result.x))

    @public
    def head(self) -> Attention:
        """Return `block_attention(A, b)` of the two parameters.

        Returns:
          The head on $R^{d+1}$.

        Transformations: jit, vmap, grad.
        """
        return block_attention(self.matrix, self.gain)


@public
def block_attention(A: Float[AnyArray, "d d"], b: Scalar) -> Attention:
    """Return the head on $R^{d+1}$ with `U = diag(A, 0)` and `V = (0, …, 0, b)`.

    Its infinite prompt predicts $b⟨w, SAx_q⟩$.

    Args:
      A: shape (d, d).
      b: the gain, shape ().

    Returns:
      The head, `value` of shape (1, d + 1).

    Source: [BB26, Section 5]. Transformations: jit, vmap, grad.
    """
    matrix, gain = known(as_float(A)), known(as_float(b))
    last = np.eye(matrix.shape[-1] + 1)[-1:]
    return Attention(namespace(matrix).pad(matrix, ((0, 1), (0, 1))), (gain * last).astype(matrix.dtype))


@public
def block_risk(task: LinearRegression, blocks: Blocks, scores: ScoreTable, queries: QueryAverage) -> Float[Array, ""]:
    """Return `R_L = ½ E(ŷ - y)²` of a block head on finite prompts, averaged over tasks in closed form.

    `2R_L = E_x[τ_w² b²‖SAx‖²/τ² (E ĝ² - P) - 2bτ_w² (xᵀSAx/τ) E ĝ + τ_w²‖x‖² + b²(τ_w² tr S + s²) P] + s²` with τ² =
    xᵀAᵀSAx.

    Args:
      task: the task.
      blocks: A and b.
      scores: participation and score error of one prompt length; scores with a standard deviation above 30 count as
        those of 30.
      queries: nodes for the average over queries.

    Returns:
      The risk, shape (), equal to `LinearRegression.finite_risk` up to the error of the nodes. With
      `QueryAverage.radial(d)`, for S, $S_q$ and A multiples of the identity, its relative error is below 1e-9 for heads
      with ‖A‖ ≤ 2. With `QueryAverage.of_frames(d)` it is about 2e-4 at the best heads, and up to 4e-3 off them in
      three dimensions; more frames lower it. NumPy takes 5 ms at the default nodes. It takes a second to compile where
      an argument is traced.

    Raises:
      ValueError: if float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    require_float64("block_risk", task.cov)
    return as_array(_block_risk(*jax.tree.map(known, (task, blocks, scores, queries))))


@jitted()
def _block_risk(task: LinearRegression, blocks: Blocks, scores: ScoreTable, queries: QueryAverage) -> Scalar:
    root, query_root = _covariance_root(task.cov), _covariance_root(task.query_cov)
    power = task.task_scale**2
    query = queries.nodes @ query_root.T
    tilt = query @ blocks.matrix.T @ root
    xp = namespace(query, tilt)
    tau_squared = xp.sum(tilt**2, axis=1)
    predicted = blocks.gain * tilt @ root.T
    miss = query - predicted
    terms = _ErrorTerms(
        infinite=power * xp.sum(miss**2, axis=1),
        shrink=power * xp.sum(predicted * miss, axis=1),
        along=power * xp.sum(predicted**2, axis=1) / xp.where(tau_squared > 0, tau_squared, 1.0),
        value=blocks.gain**2 * (power * task.cov.trace() + task.noise_std**2),
    )
    square_error = terms.square_error(scores.statistics(tau_squared))
    return 0.5 * (queries.weights @ square_error + task.noise_std**2)


@jax.jit
def _log_risk_and_slope(task, blocks, scores, queries):
    """Return ln of the risk, and its gradient.

    A noiseless risk of 1e-8 has gradients below any tolerance long before its minimum.
    """
    return jax.value_and_grad(lambda blocks: jnp.log(block_risk(task, blocks, scores, queries)))(blocks)


# --- long prompts, on the minima of the infinite-prompt risk ---------------------------------------------


@public
def valley_limit(squared_tilt: np.ndarray | float, dimension: int, noise: float = 0.0) -> np.ndarray | float:
    """Return `lim (2R_L - s²) L = d (1 - 2u²)^{-d/2} [1/(1 - 2u²) + (1 + s²/d)/u²]` on bu = 1, for Σ = I and $τ_w = 1$.

    Without noise any other Σ multiplies it by tr Σ/d.

    Args:
      squared_tilt: u², 0 < u² < ½, any shape.
      dimension: d ≥ 1.
      noise: s², the variance (not the standard deviation) of the labels' noise.

    Returns:
      The limit, of the shape of `squared_tilt`; a float for a float.

    Source: derived here, see book/risk_and_parameters.
    """
    growth = np.exp(-dimension / 2 * np.log1p(-2 * squared_tilt))
    return growth * (dimension / (1 - 2 * squared_tilt) + (dimension + noise) / squared_tilt)


class _BestInTheValley(NamedTuple):
    """The best softmax head on the valley for long prompts."""

    squared_tilt: float
    limit: float
    price: float


@public
def best_in_the_valley(dimension: int, noise: float = 0.0) -> _BestInTheValley:
    """Return the u² that minimises `valley_limit`, the minimum, and the minimum over the limit of linear attention.

    x = u² solves `(d + 2)(1 + s²/(d + s²)) x² - (d + 4) x + 1 = 0`, and is about 1/d. For linear attention the limit is
    `d (d + 1 + s²)`.

    Args:
      dimension: d ≥ 1.
      noise: s², the variance (not the standard deviation) of the labels' noise.

    Returns:
      A named tuple of `squared_tilt`, u²; `limit`, the minimum; and `price`, the ratio, above 1.

    Source: derived here, see book/risk_and_parameters.
    """
    excess = (dimension + 2) * noise / (dimension + noise)
    squared = 2 / (dimension + 4 + np.sqrt(dimension**2 + 4.0 * dimension + 8 - 4 * excess))
    limit = valley_limit(squared, dimension, noise)
    return _BestInTheValley(float(squared), float(limit), float(limit / (dimension * (dimension + 1.0 + noise))))
