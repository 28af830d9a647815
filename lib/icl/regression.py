"""In-context linear regression: the risk of one attention head on an infinite, a finite and a sampled prompt.

A task is w ~ $N(0, τ_w² I)$; tokens are z = (x, ⟨w, x⟩ + noise), x ~ N(0, S); the query is $(x_q, 0)$,
$x_q ~ N(0, S_q)$, and its label $⟨w, x_q⟩$ + noise is predicted by the last coordinate of the head's output. Given w,
tokens are $N(0, Γ_w)$, so that all results on Gaussian prompts apply. [BB26, Section 5] has $S = S_q$, $τ_w = 1$ and no
noise. Exact risks take the natural logarithm of the prompt length, `log_length`, or are rational in `length`; `draw`
and `bayes_risk` draw `length` tokens.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import (
    as_array,
    as_float,
    is_concrete,
    public,
    require_count,
    require_covariance,
    require_finite,
    require_float64,
    require_positive,
)
from lib._namespace import MOST_IN_NUMPY, exact, known, namespace
from lib._types import AnyArray, Numeric, Scalar, Scalars
from lib.attention import Attention
from lib.finite_prompt import _ScoreStatistics
from lib.icl.averages import PairAverage
from lib.icl.score_table import ScoreTable
from lib.measures import _covariance_root
from lib.random import _split, normal


class _RegressionPrompts(NamedTuple):
    """Independent prompts, each with its own task."""

    tokens: Float[AnyArray, "n L e"]
    queries: Float[AnyArray, "n e"]
    targets: Float[AnyArray, " n"]


class _ErrorTerms(eqx.Module):
    """The coefficients of prompts' mean square errors in their score statistics."""

    infinite: Scalars
    shrink: Scalars
    along: Scalars
    value: Scalars

    @public
    def square_error(self, scores: _ScoreStatistics) -> Scalars:
        """Return `E (ŷ - y)² = (c - y)² + 2P c (y - c) + (Q - P) c²/τ² + P ⟨v, Γ_w v⟩`."""
        return self.infinite + self.finite(scores)

    @public
    def finite(self, scores: _ScoreStatistics) -> Scalars:
        """Return `square_error - infinite`, the contribution of the finite length, of either sign."""
        p, q = scores.participation, scores.score_error
        return 2 * p * self.shrink + (q - p) * self.along + p * self.value


class LinearRegression(eqx.Module):
    """In-context linear regression with Gaussian covariates, queries and task vectors.

    All risks are half the mean square error against the noisy label.

    Args:
      cov: S, covariance of the covariates, shape (d, d), or (..., d, d) for a stack of tasks; it may be singular.
      query_cov: $S_q$, covariance of the queries, of the same shape; `cov` by default.
      task_scale: $τ_w$, standard deviation of the coordinates of w, shape () or (...), positive.
      noise_std: s, standard deviation of the noise on all labels, the query's included, shape () or (...), ≥ 0.

    Attributes:
      cov: S.
      query_cov: $S_q$.
      task_scale: $τ_w$.
      noise_std: s.

    Raises:
      ValueError: if shapes do not fit, a matrix is not a covariance, or a scale is out of range.
    """

    cov: Float[Array, "*tasks d d"]
    query_cov: Float[Array, "*tasks d d"]
    task_scale: Float[Array, "*tasks"]
    noise_std: Float[Array, "*tasks"]

    def __init__(
        self,
        cov: Numeric,
        query_cov: Numeric | None = None,
        task_scale: float | Numeric = 1.0,
        noise_std: float | Numeric = 0.0,
    ):
        self.cov = as_float(cov)
        self.query_cov = self.cov if query_cov is None else as_float(query_cov)
        self.task_scale = as_float(task_scale)
        self.noise_std = as_float(noise_std)

    def __check_init__(self):
        """Check that there are two covariances of one dimension, and two scales in range."""
        for name in ("cov", "query_cov"):
            require_covariance("LinearRegression", name, getattr(self, name))
        if self.cov.shape != self.query_cov.shape:
            raise ValueError(
                "`LinearRegression(cov, query_cov)` needs two covariances of one dimension, because prompt and query "
                f"share the task. Got shapes {self.cov.shape} and {self.query_cov.shape}."
            )
        require_positive("LinearRegression", "task_scale", self.task_scale, "it is the width of the tasks.")
        require_finite("LinearRegression", "noise_std", self.noise_std, "it is a standard deviation.")
        if is_concrete(self.noise_std) and (np.asarray(self.noise_std) < 0).any():
            raise ValueError(
                f"`LinearRegression(noise_std=...)` is a standard deviation, hence ≥ 0. Got {self.noise_std}."
            )

    @property
    def dimension(self) -> int:
        """The dimension d of the covariates; tokens are in $R^{d+1}$."""
        return self.cov.shape[-1]

    @property
    def _noise_ratio(self) -> Scalar:
        """`ς = s²/τ_w²`."""
        return (self.noise_std / self.task_scale) ** 2

    @public
    def infinite_risk(self, params: Attention) -> Float[Array, ""]:
        """Return `½ E (⟨v, Γ_w U (x_q, 0)⟩ - y)²`, the risk on infinite prompts, in closed form for any U and V.

        The output is $⟨x_q, m(w)⟩$ with m quadratic in w. On U = diag(A, 0) and v = (0, b) the risk is `½ τ_w² tr[(bSA
        - I) S_q (bSA - I)ᵀ] + ½ s²` [BB26, Section 5].

        Args:
          params: the head, `value` of shape (1, d + 1) or (d + 1, d + 1), whose last row is v.

        Returns:
          The risk, shape ().

        Raises:
          ValueError: if float64 is off.

        Source: derived here; [BB26, Section 5] for block heads. Transformations: jit, vmap, grad.
        """
        require_float64("LinearRegression.infinite_risk", self.cov)
        task, params = jax.tree.map(known, (self, params))
        constant, linear, quadratic = task._response(params)
        bias = task._mean_square(constant, linear - np.eye(task.dimension), quadratic)
        return as_array(0.5 * (bias + task.noise_std**2))

    @public
    def linear_head_risk(self, params: Attention, length: int | Scalar) -> Float[Array, ""]:
        """Return the risk of a given linear head, `½ E (⟨v, (1/L) Σ z zᵀ U (x_q, 0)⟩ - y)²`, in closed form.

        By Isserlis' theorem the variance given $(w, x_q)$ is `(c² + ⟨v, Γ_w v⟩⟨t, Γ_w t⟩)/L`. `linear_attention_risk`
        is the least risk over linear heads without labels in their scores.

        Args:
          params: the head, `value` of shape (1, d + 1) or (d + 1, d + 1), whose last row is v.
          length: the prompt length L > 0, shape (); it need not be an integer.

        Returns:
          The risk, shape ().

        Raises:
          ValueError: if float64 is off.

        Source: derived here. Transformations: jit, vmap, grad.
        """
        task, params, length = jax.tree.map(known, (self, params, length))
        a, c, v, b = task._parts(params)
        # ⟨v, Γ_w v⟩ and E ⟨t, Γ_w t⟩ over queries, as (constant, linear, coefficient of ⟨w, Sw⟩) in w
        power = (v @ task.cov @ v + b**2 * task.noise_std**2, 2 * b * task.cov @ v, b**2)
        seen = c @ task.query_cov @ c
        spread = (
            (a.T @ task.cov @ a @ task.query_cov).trace() + seen * task.noise_std**2,
            2 * task.cov @ a @ task.query_cov @ c,
            seen,
        )
        label, label_variance = task._label_power()
        product = (power[0] + power[2] * label) * (spread[0] + spread[2] * label)
        product += task.task_scale**2 * power[1] @ spread[1] + power[2] * spread[2] * label_variance
        variance = task._mean_square(*task._response(params)) + product
        return as_array(known(self.infinite_risk(params)) + 0.5 * variance / length)

    @public
    def finite_risk(
        self, params: Attention, log_length: Scalar, *, average: PairAverage | None = None
    ) -> Float[Array, ""]:
        """Return the risk on prompts of `exp(log_length)` tokens, any U and V, without drawing a prompt.

        Given task and query the error is exact (`_ErrorTerms`); their average is taken at fixed nodes, with
        the infinite prompt's error, whose average is known, as control variate.

        Args:
          params: the head, `value` of shape (1, d+1) or (d+1, d+1); scores with a standard deviation above 30 count as
            those of 30 (see `ScoreTable`).
          log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.
          average: the nodes; `PairAverage.of_frames(d)` by default.

        Returns:
          The risk, shape (). Deterministic; its error is that of the nodes, estimated by `finite_risk_error`: at the
          default nodes 2e-4 of the risk at the best block heads, and up to 1e-3 at heads twice as large or far from
          them. `block_risk` needs a block head and is faster, but not more accurate at its default nodes: 2e-4 at
          the best heads and up to 4e-3 off them (d = 3), which `QueryAverage.of_frames(d, frames=1024)` lowers to 4e-4.
          A new length costs a `ScoreTable`, about a second (built again at each call where `log_length` is traced);
          then the first call compiles for 2 s, and each takes 0.2 s.

        Raises:
          ValueError: if float64 is off.

        Source: derived here. Transformations: jit, vmap, grad.
        """
        require_float64("LinearRegression.finite_risk", self.cov)
        average = PairAverage.of_frames(self.dimension) if average is None else average
        scores = ScoreTable.at(log_length)
        finite, infinite, participation = map(known, _average_error(self, params, scores, average))
        # right in mean at any strength; best at 1 for long prompts, and at 0 for single tokens
        strength, noise = (1 - participation) ** 2, known(self.noise_std) ** 2
        exact_infinite = 2 * known(self.infinite_risk(params)) - noise
        return as_array(0.5 * (infinite + finite + strength * (exact_infinite - infinite) + noise))

    @public
    def risk_gap(self, params: Attention, scores: ScoreTable, average: PairAverage) -> Float[Array, ""]:
        """Return `finite_risk - infinite_risk` without taking the difference, so that it keeps its digits.

        Args:
          params: the head, `value` of shape (1, d + 1) or (d + 1, d + 1).
          scores: participation and score error of one prompt length.
          average: nodes for the average over tasks and queries.

        Returns:
          The difference, shape (), with the error of the nodes.

        Raises:
          ValueError: if float64 is off.

        Source: derived here. Transformations: jit, vmap, grad.
        """
        require_float64("LinearRegression.risk_gap", self.cov)
        return as_array(0.5 * _average_error(self, params, scores, average)[0])

    @public
    def finite_risk_error(self, params: Attention, log_length: Scalar) -> Float[Array, ""]:
        """Return an estimate of the error of `finite_risk`: twice its largest change under three other sets of nodes.

        Two sets have other seeds; the third is finer, too.

        Args:
          params: the head, `value` of shape (1, d + 1) or (d + 1, d + 1).
          log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

        Returns:
          The absolute error, shape ().

        Raises:
          ValueError: if float64 is off.

        Transformations: jit, vmap, grad.
        """
        rules = [PairAverage.of_frames(self.dimension, seed=seed) for seed in range(3)]
        finer = PairAverage.of_frames(self.dimension, seed=3, query_radii=48, task_radii=6)

        def risk(average):
            return self.finite_risk(params, log_length, average=average)

        # one program computes all three; the first rule is the default of `finite_risk`
        first, *others = jax.lax.map(risk, jax.tree.map(lambda *leaves: jnp.stack(leaves), *rules))
        return 2 * jnp.max(jnp.abs(jnp.stack([*others, risk(finer)]) - first))

    @public
    def linear_attention_risk(self, length: int | Scalar) -> Float[Array, ""]:
        """Return the least risk of linear attention, `ŷ = x_qᵀ M (1/L) Σ y_i x_i` at its best M, in closed form.

        `M = [(1 + 1/L) S + ((tr S + s²/τ_w²)/L) I]⁻¹`; at $S = S_q = I$ and s = 0 the risk is `½ d(d+1)/(L+d+1)`. The
        risk of a given linear head is `linear_head_risk`.

        Args:
          length: the prompt length L > 0, shape (); it need not be an integer.

        Returns:
          The least risk, shape ().

        Raises:
          ValueError: if float64 is off.

        Source: derived here. Transformations: jit, vmap, grad.
        """
        require_float64("LinearRegression.linear_attention_risk", self.cov)
        task, length = jax.tree.map(known, (self, length))
        xp = namespace(length, *jax.tree.leaves(task))
        eigenvalues, vectors = xp.linalg.eigh(task.cov)
        noise = xp.sum(eigenvalues) + task._noise_ratio
        learned = eigenvalues / ((1 + 1 / length) * eigenvalues + noise / length)
        queries = xp.einsum("ji,jk,ki->i", vectors, task.query_cov, vectors)
        return as_array(0.5 * (task.task_scale**2 * xp.sum(queries * (1 - learned)) + task.noise_std**2))

    @public
    def debiased_descent(self, log_length: Scalar) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return the best step η and the risk of one step of debiased gradient descent.

        The prediction is `(η/L) Σ_l (y_l - ȳ) ⟨x_l - x̄, x_q⟩`, the limit of `best_pair` with keys → 0. With
        $ς = s²/τ_w²$, `η = L/(L + d + ς)` and `2R = τ_w² d + s² - τ_w² d (L - 1)/(L + d + ς)`.

        Args:
          log_length: natural logarithm of the prompt length L ≥ 1, shape ().

        Returns:
          (η of shape (), risk of shape ()): half the mean square, label noise included.

        Raises:
          ValueError: if a covariance is not the identity, or if float64 is off.

        Source: derived here; η is that of [He25]. Transformations: jit, vmap, grad.
        """
        owner = "LinearRegression.debiased_descent"
        task, (log_length,) = _identity(owner, self), exact(owner, log_length)
        dimension, inverse = task.dimension, namespace(log_length).exp(-log_length)
        step = 1 / (1 + (dimension + task._noise_ratio) * inverse)
        excess = task.task_scale**2 * dimension * inverse * (dimension + 1 + task._noise_ratio) * step
        return as_array(step), as_array(0.5 * (task.noise_std**2 + excess))

    @public
    def bayes_risk(self, length: int, *, key: PRNGKeyArray, n: int) -> Float[Array, ""]:
        """Return an estimate of the least risk of any predictor, that of the posterior mean.

        The posterior mean is ridge regression with `λ = s²/τ_w²`, or minimum-norm least squares at s = 0. The estimate
        is the mean over drawn prompts of the exact posterior error, which does not depend on labels. Prompts are drawn
        one after the other by NumPy if the arguments are known and n ≤ 1000, and otherwise in batches of 256.

        Args:
          length: the prompt length L, a whole number ≥ 1.
          key: JAX random key.
          n: number of prompts.

        Returns:
          The estimate, shape (). NumPy takes 0.2 ms for each prompt of a hundred tokens; otherwise each length takes a
          second to compile.

        Raises:
          ValueError: if `length` is not a whole number ≥ 1.

        Transformations: jit, vmap, grad.
        """
        length = require_count("bayes_risk", "length", length, "an empty prompt defines no probability measure.")
        leaves = jax.tree.leaves((self, jr.key_data(key)))
        in_numpy = n <= MOST_IN_NUMPY and self.cov.dtype == np.float64 and is_concrete(*leaves)
        task = jax.tree.map(known, self) if in_numpy else self
        root, ridge = _covariance_root(task.cov), task._noise_ratio

        def posterior_error(key):
            covariates = normal(key, (length, task.dimension), root.dtype) @ root.T
            xp = namespace(covariates, ridge, task.query_cov)
            eigenvalues, vectors = xp.linalg.eigh(covariates.T @ covariates)
            rounding = task.dimension * jnp.finfo(root.dtype).eps * eigenvalues[-1]
            eigenvalues = xp.where(eigenvalues > rounding, eigenvalues, 0.0)
            unknown = xp.where(eigenvalues > 0, ridge / xp.where(eigenvalues > 0, eigenvalues + ridge, 1.0), 1.0)
            return xp.einsum("ji,jk,ki,i", vectors, task.query_cov, vectors, unknown)

        if in_numpy:
            mean = np.mean([posterior_error(each) for each in _split(key, n)])
        else:
            mean = jnp.mean(jax.lax.map(posterior_error, jr.split(key, n), batch_size=256))
        return as_array(0.5 * (task.task_scale**2 * mean + task.noise_std**2))

    @public
    def draw(self, length: int, n: int, *, key: PRNGKeyArray) -> _RegressionPrompts:
        """Return n independent prompts with their queries and labels.

        Args:
          length: the prompt length L, a whole number ≥ 1.
          n: number of prompts, a whole number ≥ 1.
          key: JAX random key.

        Returns:
          A named tuple of `tokens`, shape (n, L, d + 1), covariates with their label last; `queries`, shape (n, d + 1),
          with 0 for their label; and `targets`, the labels of the queries, shape (n,). They are arrays of NumPy if the
          arguments are known, and nothing is compiled then.

        Raises:
          ValueError: if a count is not a whole number ≥ 1.

        Transformations: jit, vmap, grad.
        """
        length = require_count("draw", "length", length, "an empty prompt defines no probability measure.")
        n = require_count("draw", "n", n, "a draw has a prompt.")
        task_key, covariate_key, noise_key, query_key, label_key = _split(key, 5)
        task = jax.tree.map(known, self)
        d, dtype = task.dimension, task.cov.dtype
        tasks = task.task_scale * normal(task_key, (n, d), dtype)
        x = normal(covariate_key, (n, length, d), dtype) @ _covariance_root(task.cov).T
        y = (x @ tasks[..., None])[..., 0] + task.noise_std * normal(noise_key, (n, length), dtype)
        queries = normal(query_key, (n, d), dtype) @ _covariance_root(task.query_cov).T
        xp = namespace(x, y, queries)
        targets = xp.sum(queries * tasks, axis=1) + task.noise_std * normal(label_key, (n,), dtype)
        tokens = xp.concatenate([x, y[..., None]], axis=-1)
        return _RegressionPrompts(tokens, xp.pad(queries, ((0, 0), (0, 1))), targets)

    def _parts(self, params: Attention) -> tuple[Any, Any, Any, Any]:
        """Return the columns (a, c) of U that multiply covariates, and the parts (v, b) of the last row of V."""
        d = self.dimension
        return params.bilinear[:d, :d], params.bilinear[d, :d], params.value[-1, :d], params.value[-1, d]

    def _response(self, params: Attention) -> tuple[Any, Any, Any]:
        """The infinite prompt's output is `⟨x_q, constant + linear w + quadratic ⟨w, Sw⟩⟩`."""
        a, c, v, b = self._parts(params)
        constant = a.T @ self.cov @ v + b * self.noise_std**2 * c
        return constant, c[:, None] * (self.cov @ v) + b * a.T @ self.cov, b * c

    def _mean_square(
        self, constant: Float[AnyArray, " d"], linear: Float[AnyArray, "d d"], quadratic: Float[AnyArray, " d"]
    ) -> Scalar:
        """`E ⟨x_q, constant + linear w + quadratic ⟨w, Sw⟩⟩²` over queries and tasks."""
        label, label_variance = self._label_power()
        mean = constant + label * quadratic
        return (
            mean @ self.query_cov @ mean
            + label_variance * quadratic @ self.query_cov @ quadratic
            + self.task_scale**2 * (linear.T @ self.query_cov @ linear).trace()
        )

    def _label_power(self) -> tuple[Scalar, Scalar]:
        """Mean and variance over tasks of ⟨w, Sw⟩, the variance of a noiseless label."""
        power = self.task_scale**2
        return power * self.cov.trace(), 2 * power**2 * (self.cov**2).sum()


def _identity(owner: str, task: LinearRegression) -> LinearRegression:
    """`task`, whose covariances must be the identity, with arrays of NumPy where they are not traced."""
    require_float64(owner, task.cov)
    for name in ("cov", "query_cov"):
        matrix = getattr(task, name)
        eye = np.eye(task.dimension)
        if is_concrete(matrix) and (matrix.shape != eye.shape or np.abs(np.asarray(matrix) - eye).max() > 1e-12):
            raise ValueError(
                f"`{owner}` needs a task whose {name} is the identity, because only then do all heads see "
                f"the same scores. Got {np.asarray(matrix)}."
            )
    return jax.tree.map(known, task)


def _whitened(root, noise_std, w: Float[Array, " d"], dual: Float[Array, " e"]) -> Float[Array, " e"]:
    """Return u with ⟨dual, z⟩ = ⟨u, n⟩ for the token z = (x, ⟨w, x⟩ + noise), x = Rg, n = (g, h) normal."""
    return jnp.append((dual[:-1] + dual[-1] * w) @ root, noise_std * dual[-1])


@eqx.filter_jit
def _average_error(
    task: LinearRegression, params: Attention, scores: ScoreTable, average: PairAverage
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return means over nodes: `E (ŷ - y)²` minus the infinite prompt's, the infinite prompt's, the participation."""
    d = task.dimension
    root, query_root = _covariance_root(task.cov), _covariance_root(task.query_cov)

    whiten = partial(_whitened, root, task.noise_std)

    def given_task(query, w):
        """Averages over the length of the query, its direction given."""
        tilt = whiten(w, params.bilinear[:, :d] @ query)
        value = whiten(w, params.value[-1])
        tau_squared, output = tilt @ tilt, tilt @ value
        miss = query @ w - output
        along = output**2 / jnp.where(tau_squared > 0, tau_squared, 1.0)

        def given_radius(radius):
            square = radius**2
            terms = _ErrorTerms(square * miss**2, square * output * miss, along, value @ value)
            statistics = scores.statistics(square * tau_squared)
            return jnp.stack([terms.finite(statistics), terms.infinite, statistics.participation])

        return average.query_weights @ jax.vmap(given_radius)(average.query_radii)

    def given_ray(ray_and_frame):
        ray, frame = ray_and_frame
        axes = task.task_scale * jnp.concatenate([frame, -frame])
        tasks = average.task_radii[:, None, None] * axes
        values = jax.vmap(jax.vmap(given_task, (None, 0)), (None, 0))(query_root @ ray, tasks)
        return average.task_weights @ jnp.mean(values, axis=1)

    by_ray = jax.lax.map(jax.checkpoint(given_ray), (average.rays, average.frames))
    return tuple(jnp.mean(by_ray, axis=0))
