r"""Gaussian mixtures with one covariance: the risks of denoising and of discrimination, and heads that reach them.

Tokens come from `Σ_k π_k N(m_k, Γ)`. Denoising sees `Z = X + ξ ε`, whose components have the covariance `S = Γ + ξ² I`;
the Bayes denoiser is affine in each component and gated by the posterior of the component [GBB26]. Discrimination
predicts which of two components a token comes from. Both Bayes risks depend on the means through their differences
in units of the components' standard deviations, so an integral over the span of these differences is exact:

    E‖X - E[X|Z]‖² = ξ² tr(Γ S⁻¹) + Σ_{k<l} ‖ξ² S⁻¹(m_k - m_l)‖² ∫ p_k p_l / Σ_j p_j,   p_k = π_k N(·; S^{-1/2} m_k, I).

Every term is positive, so small risks keep their digits. Derived here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.lax import stop_gradient
from jax.nn import log_softmax
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from lib._checks import (
    as_float,
    is_concrete,
    public,
    require_count,
    require_finite,
    require_float64,
    require_now_or_then,
    require_positive,
)
from lib.attention import Attention, attend
from lib.measures import Gaussian, GaussianMixture, Measure

Scalar = float | int | Float[Array, ""]

# Covariances are equal, and means span a plane, up to this part of their largest entry.
TOLERANCE = 1e-12
# Rounding of a sum of up to 1e7 positive terms.
ROUNDING = 1e-13
# Weights below e^{-1e5} are zero in float64; a finite logarithm keeps differences of two of them defined.
SMALLEST_LOG_WEIGHT = -1e5
# Step of the trapezoids times the steepness of a posterior: an error of e^{-2π²/0.5} = 7e-18.
LARGEST_STEP = 0.5
EPS = float(np.finfo(np.float64).eps)
# Below this variance noise is none: its square root is 1e-154.
SMALLEST_VARIANCE = float(np.finfo(np.float64).tiny)


@public
def denoising_bayes_risk(mixture: GaussianMixture, noise_std: Scalar) -> Float[Array, ""]:
    r"""Return `E‖X - E[X|Z]‖²`, X ~ mixture and Z = X + noise_std · ε, the least mean square error of denoising.

    Args:
      mixture: the distribution of X: log-weights (K,), means (K, d), covariances (K, d, d). The covariances are equal
        and may be singular; the differences of the means span at most two dimensions, so any three means are allowed.
      noise_std: standard deviation ξ ≥ 0 of the noise in each coordinate, shape ().

    Returns:
      The risk, summed over the d coordinates, without a factor 1/2, shape (); 0 at ξ = 0. Its relative error is below
      1e-10 (`mixture_quadrature_error` estimates it) except where rounding of a singular Γ counts: where ξ² is below
      1e-6 of its largest eigenvalue. A risk below 1e-308 is 0. Milliseconds for two components or collinear means; up
      to seconds for ten components in a plane, plus seconds to compile.

    Raises:
      ValueError: if the covariances differ by more than 1e-12 of their largest entry, the differences of the means span
        more than two dimensions, ξ is negative or not finite, or float64 is off. Inside `jit` and `vmap` the first two
        raise at run time, and the others pass unseen.

    Source: derived here; for two components of equal norm, balanced and isotropic, it is the risk of [GBB26, eq. 10].
    Transformations: jit and vmap (on a grid that resolves components up to 30 standard deviations apart), grad (first
    derivatives).
    """
    return _denoising_bayes(mixture, noise_std).value


@public
def denoising_linear_risk(mixture: GaussianMixture, noise_std: Scalar, *, intercept: bool = False) -> Float[Array, ""]:
    r"""Return the least `E‖X - A Z - c‖²` over matrices A, with c = 0 or, with `intercept`, over vectors c.

    The minimiser is `A = C (C + ξ² I)⁻¹` with C = E[X Xᵀ], or C = Cov X with an intercept. Without an intercept this is
    the least risk of linear attention of any number of heads and layers on the infinite prompt [GBB26, Lemma C.7].

    Args:
      mixture: the distribution of X: log-weights (K,), means (K, d), covariances (K, d, d), which are equal and may be
        singular. The means may span any dimension.
      noise_std: standard deviation ξ ≥ 0 of the noise in each coordinate, shape ().
      intercept: whether a constant vector is added to the linear map.

    Returns:
      `Σ_i λ_i ξ²/(λ_i + ξ²)` over the eigenvalues of C, summed over the d coordinates, without a factor 1/2, shape ().
      Exact up to rounding (`mixture_quadrature_error` estimates it).

    Raises:
      ValueError: as `denoising_bayes_risk`, except that the means may span any dimension.

    Source: [GBB26, Lemma C.7]. Transformations: jit, vmap, grad (first derivatives).
    """
    return _denoising_linear(mixture, noise_std, intercept=intercept).value


@public
def discriminant_bayes_risk(mixture: GaussianMixture) -> Float[Array, ""]:
    r"""Return `E log(1 + exp(-Y f*(X)))`, the least logistic risk of telling two components apart.

    The label Y is +1 for component 0 and -1 for component 1, and f* the log-odds of the label given X. The risk is the
    conditional entropy of the label, in nats: from 0 for separable components to the entropy of the weights (ln 2 for
    equal ones) for equal means.

    Args:
      mixture: two components: log-weights (2,), means (2, d), covariances (2, d, d), which are equal. Where they are
        singular and the means differ in a direction of no variance, the components are separable and the risk is 0.

    Returns:
      The risk, shape (). Its relative error is below 1e-10 (`mixture_quadrature_error` estimates it). A risk below
      1e-308 is 0.

    Raises:
      ValueError: unless there are two components; if the covariances differ by more than 1e-12 of their largest entry,
        or float64 is off. Inside `jit` and `vmap` different covariances raise at run time.

    Source: the model is that of [GBB26, section 3]; the integral is derived here. Transformations: jit, vmap, grad
    (first derivatives).
    """
    return _discriminant(mixture).value


@public
def mixture_quadrature_error(function: Callable, *args: Any, **options: Any) -> Float[Array, ""]:
    """Return an estimate of the relative error of a risk of this module at these arguments.

    Args:
      function: `denoising_bayes_risk`, `denoising_linear_risk` or `discriminant_bayes_risk`.
      *args: its arguments.
      **options: its keyword arguments.

    Returns:
      Twice the largest relative change by a finer step and by a longer reach of the trapezoids, plus rounding, which
      includes that of the covariance's eigenvalues, shape (); 0 where the risk is exactly 0. It is meant not to be
      below the true error.

    Raises:
      ValueError: if `function` is none of the three, or as `function` does.

    Source: derived here. Transformations: jit and vmap.
    """
    estimate = _ESTIMATES.get(function)
    if estimate is None:
        names = ", ".join(f"`{each.__name__}`" for each in _ESTIMATES)
        raise ValueError(
            f"`mixture_quadrature_error(function=...)` must be one of {names}: they are what it knows how to refine. "
            f"Got {function!r}."
        )
    here, finer, farther = (estimate(*args, refinement=refinement, **options) for refinement in _REFINEMENTS)
    change = jnp.maximum(jnp.abs(finer.value - here.value), jnp.abs(farther.value - here.value))
    scale = jnp.where(here.value == 0, 1.0, here.value)
    return jnp.where(here.value == 0, 0.0, (2 * change + here.rounding) / scale + ROUNDING)


# --- denoisers --------------------------------------------------------------------------------------------------------


@public
def add_noise(mixture: GaussianMixture, noise_std: Scalar) -> GaussianMixture:
    r"""Return the distribution of `Z = X + noise_std · ε`, X ~ mixture: what a noisy prompt is drawn from.

    Args:
      mixture: log-weights (K,), means (K, d), covariances (K, d, d), which may differ.
      noise_std: standard deviation ξ of the noise in each coordinate, shape ().

    Returns:
      The mixture with `noise_std² I` added to each covariance.

    Source: [GBB26, section 4]. Transformations: jit, vmap, grad.
    """
    components = mixture.components
    noise = as_float(noise_std) ** 2 * jnp.eye(components.mean.shape[-1])
    return GaussianMixture(mixture.log_weights, Gaussian(components.mean, components.cov + noise))


@public
def bayes_denoiser(mixture: GaussianMixture, noise_std: Scalar, query: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Return `E[X | Z = query] = z - ξ² S⁻¹ (z - Σ_k β_k m_k)`, β the posterior of the component.

    Args:
      mixture: the distribution of X: log-weights (K,), means (K, d), equal covariances (K, d, d), singular or not.
      noise_std: standard deviation ξ > 0 of the noise in each coordinate, shape ().
      query: the noisy token z, shape (d,).

    Returns:
      The posterior mean, shape (d,).

    Raises:
      ValueError: if the covariances differ, ξ is not positive, or float64 is off.

    Source: [GBB26, eq. 10]. Transformations: jit, vmap, grad.
    """
    cov, variance = _shared_cov("bayes_denoiser", mixture), _positive_noise("bayes_denoiser", noise_std) ** 2
    return _posterior_mean(mixture, cov, variance, query)


@public
def iterate_denoiser(
    mixture: GaussianMixture, noise_std: Scalar, start: Float[Array, " d"], steps: int
) -> Float[Array, "n d"]:
    r"""Return the iterates `z_{n+1} = E[X | Z = z_n]` of the Bayes denoiser, from `z_0 = start`.

    With two equal weights and an isotropic covariance they tend to `c ± u δ`, c the middle and 2δ the difference of the
    means, u = `denoiser_fixed_point`.

    Args:
      mixture: as for `bayes_denoiser`.
      noise_std: as for `bayes_denoiser`.
      start: the first point, shape (d,).
      steps: the number of steps, at least 1; static.

    Returns:
      The start and all iterates, shape (steps + 1, d).

    Raises:
      ValueError: as `bayes_denoiser`.

    Source: [GBB26, Prop. 4.3]. Transformations: jit, vmap, grad.
    """
    steps = require_count("iterate_denoiser", "steps", steps, "the start is no iterate.")
    cov, variance = _shared_cov("iterate_denoiser", mixture), _positive_noise("iterate_denoiser", noise_std) ** 2
    start = as_float(start)

    def step(point, _):
        following = _posterior_mean(mixture, cov, variance, point)
        return following, following

    return jnp.concatenate([start[None], jax.lax.scan(step, start, length=steps)[1]])


@public
def denoiser_fixed_point(separation: Scalar) -> Float[Array, ""]:
    r"""Return the largest root u of `u = tanh(λ² u)`, where the iterated Bayes denoiser of two components ends.

    It is 0 up to λ = 1; beyond, the iterates keep the two components apart.

    Args:
      separation: `λ = ‖m_1 - m_2‖/(2√(γ² + ξ²)) ≥ 0`, half the distance of the means in standard deviations of noisy
        tokens, shape ().

    Returns:
      u in [0, 1], shape (), with a relative error below 1e-12, also where λ - 1 is 1e-12.

    Raises:
      ValueError: if float64 is off.

    Source: [GBB26, Prop. 4.3] for γ = 0; for γ > 0 derived here. Transformations: jit, vmap.
    """
    separation = as_float(separation)
    require_float64("denoiser_fixed_point", separation)
    excess = (separation - 1) * (separation + 1)

    def beyond(u):
        small = jnp.abs(u) < 0.1
        near, far = jnp.where(small, u, 0.0), jnp.where(small, 0.5, u)
        # artanh(u)/u - 1
        series = jnp.polyval(1.0 / np.append(np.arange(21, 1, -2), np.inf), near**2)
        return jnp.where(small, series, jnp.arctanh(far) / far - 1) > excess

    root = jnp.exp(_bisect(lambda log_u: beyond(jnp.exp(log_u)), -60.0 * jnp.ones_like(excess), jnp.zeros_like(excess)))
    return jnp.where(excess > 0, root, 0.0)


@public
def denoising_heads(mixture: GaussianMixture, noise_std: Scalar) -> tuple[Attention, Attention]:
    r"""Return two heads whose sum, on the noisy infinite prompt, is the Bayes denoiser of two components.

    `attend(first, noisy, z) + attend(second, noisy, z) = bayes_denoiser(mixture, noise_std, z)` with
    `noisy = add_noise(mixture, noise_std)`, for every z and all weights.

    Args:
      mixture: two components of one covariance γ² I, γ ≥ 0, in d ≥ 2 dimensions; different means of one norm.
      noise_std: standard deviation ξ > 0 of the noise in each coordinate, shape ().

    Returns:
      The two heads, each with matrices of shape (d, d). Nearly opposite or nearly equal means make large entries.

    Raises:
      ValueError: if the mixture is none of these, ξ is not positive, values are traced, or float64 is off.

    Source: [GBB26, Thm 4.1 (i), Prop. C.5]. Transformations: none, because the construction depends on the values.
    """
    owner = "denoising_heads"
    cov, noise = _shared_cov(owner, mixture), _positive_noise(owner, noise_std) ** 2
    means = mixture.components.mean
    d = means.shape[1]
    if not is_concrete(cov, noise, means):
        raise ValueError(
            f"`{owner}(mixture, noise_std)` needs concrete values, because opposite means need another construction: "
            "call it outside `jit`, `vmap` and `grad`. Got traced arrays."
        )
    if len(means) != 2 or d < 2:
        raise ValueError(f"`{owner}(mixture=...)` needs two components and d ≥ 2. Got means of shape {means.shape}.")
    tokens = jnp.trace(cov) / d
    if jnp.max(jnp.abs(cov - tokens * jnp.eye(d))) > TOLERANCE * tokens:
        raise ValueError(f"`{owner}(mixture=...)` needs a covariance γ² I: others take other heads. Got {cov}.")
    total, difference = tokens + noise, means[0] - means[1]
    squares = jnp.sum(means**2, axis=1)
    if jnp.abs(squares[0] - squares[1]) > 1e-9 * jnp.max(squares) or jnp.sum(difference**2) <= 1e-18 * jnp.max(squares):
        raise ValueError(
            f"`{owner}(mixture=...)` needs different means of one norm, because attention has no offset for the norm. "
            f"Got norms {jnp.sqrt(squares)} and a distance of {jnp.linalg.norm(difference)}."
        )
    if jnp.sum((means[0] + means[1]) ** 2) <= 1e-18 * jnp.max(squares):
        axis = _unit(means[0])
        smallest = jnp.eye(d)[jnp.argmin(jnp.abs(axis))]
        normal = _unit(smallest - (smallest @ axis) * axis)
        along, across = jnp.outer(axis, axis), jnp.outer(axis, normal)
        even = noise / (2 * total) * along + tokens / (2 * total) * (jnp.eye(d) - along)
        odd = (tokens - noise) / (2 * total) * across
        first, second = (Attention((jnp.eye(d) + sign * across.T) / total, even + sign * odd) for sign in (1.0, -1.0))
        return first, second
    duals = jnp.linalg.pinv(means.T)
    rest = 0.5 * (jnp.eye(d) - means.T @ duals)

    def head(own, other):
        pull = jnp.outer(means[other], difference) / (means[other] @ difference)
        bilinear = (tokens * jnp.eye(d) + (noise - tokens) * pull) / (noise * total)
        return Attention(bilinear, noise / total * (jnp.outer(means[own], duals[own]) + rest))

    return head(0, 1), head(1, 0)


@public
def residual_denoising_head(mixture: GaussianMixture, noise_std: Scalar) -> Attention:
    r"""Return the head `U = S⁻¹, V = ξ² S⁻¹`, with which `residual_denoise` is the Bayes denoiser.

    It depends on the covariances only, so one head serves all tasks that share them. For Γ = ξ² I the other terms
    cancel, V = I/2, and this one head alone is the Bayes denoiser.

    Args:
      mixture: any number of components of one covariance Γ, with equal `m_kᵀ S⁻¹ m_k`, S = Γ + ξ² I.
      noise_std: standard deviation ξ > 0 of the noise in each coordinate, shape ().

    Returns:
      The head, with matrices of shape (d, d).

    Raises:
      ValueError: if the covariances differ, concrete `m_kᵀ S⁻¹ m_k` differ by more than 1e-9 of the largest, ξ is not
        positive, or float64 is off.

    Source: [GBB26, Thm 4.1 (ii), Prop. 4.4] for two components and Γ = γ² I; beyond, derived here. Transformations:
    jit, vmap, grad.
    """
    owner = "residual_denoising_head"
    cov, noise = _shared_cov(owner, mixture), _positive_noise(owner, noise_std) ** 2
    means = mixture.components.mean
    inverse = jnp.linalg.inv(cov + noise * jnp.eye(len(cov)))
    norms = jnp.einsum("ki,ij,kj->k", means, inverse, means)
    if is_concrete(norms) and jnp.max(norms) - jnp.min(norms) > 1e-9 * jnp.max(norms):
        raise ValueError(
            f"`{owner}(mixture=...)` needs components with equal `m_kᵀ S⁻¹ m_k`, because attention has no offset for "
            f"them. Got {norms}."
        )
    return Attention(inverse, noise * inverse)


@public
def residual_denoise(params: Attention, measure: Measure, query: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Return `z + T[μ](z) - 2 V z`, the residual layer that denoises with a head of `residual_denoising_head`.

    Args:
      params: a head with matrices of shape (d, d).
      measure: the noisy prompt, infinite (`add_noise`) or finite (`empirical`).
      query: the noisy token z, shape (d,).

    Returns:
      The denoised token, shape (d,).

    Source: [GBB26, Prop. 4.4]. Transformations: jit, vmap, grad.
    """
    return query + attend(params, measure, query) - 2 * params.value @ query


@public
def denoising_excess(
    denoiser: Callable, mixture: GaussianMixture, noise_std: Scalar, *, nodes: int = 96
) -> Float[Array, ""]:
    r"""Return `E‖f(Z) - E[X|Z]‖²`, the mean square error of a denoiser f above the Bayes risk, in d ≤ 2 dimensions.

    Args:
      denoiser: f, which maps a noisy token, shape (d,), to one of shape (d,).
      mixture: the distribution of X: log-weights (K,), means (K, d), d = 1 or 2, equal covariances, which may be
        singular.
      noise_std: standard deviation ξ > 0 of the noise in each coordinate, shape ().
      nodes: nodes per dimension and component; static. 96 suffice for functions that change over a fifth of a standard
        deviation √S or more. Compare with more nodes where a denoiser is steeper.

    Returns:
      The excess, without a factor 1/2, shape (). No difference of risks is formed, so a small excess keeps its digits.

    Raises:
      ValueError: if d > 2, the covariances differ, ξ is not positive, or float64 is off.

    Source: derived here. Transformations: jit, vmap, grad.
    """
    owner = "denoising_excess"
    cov, variance = _shared_cov(owner, mixture), _positive_noise(owner, noise_std) ** 2
    means = mixture.components.mean
    if (d := means.shape[1]) > 2:
        raise ValueError(f"`{owner}(mixture=...)` integrates over tokens, so d must be 1 or 2. Got d = {d}.")
    normals, weights = _normal_grid(d, nodes)
    root = jnp.linalg.cholesky(cov + variance * jnp.eye(d))

    def component(mean):
        tokens = mean + normals @ root.T
        misses = jax.vmap(lambda z: denoiser(z) - _posterior_mean(mixture, cov, variance, z))(tokens)
        return weights @ jnp.sum(misses**2, axis=1)

    return jnp.exp(_log_weights(mixture)) @ jax.lax.map(component, means)


# --- discrimination by a head -----------------------------------------------------------------------------------------


class GatedScore(eqx.Module):
    """The score `f(x) = ⟨w, x⟩ + b + r σ(s_0 + ⟨s, x⟩)`: the output of a head on labelled tokens of a mixture.

    Args:
      slope: w, shape (d,).
      intercept: b, shape ().
      height: r, shape ().
      gate_slope: s, shape (d,).
      gate_offset: $s_0$, shape ().
    """

    slope: Float[Array, " d"] = eqx.field(converter=as_float)
    intercept: Float[Array, ""] = eqx.field(converter=as_float)
    height: Float[Array, ""] = eqx.field(converter=as_float)
    gate_slope: Float[Array, " d"] = eqx.field(converter=as_float)
    gate_offset: Float[Array, ""] = eqx.field(converter=as_float)

    @public
    def __call__(self, token: Float[Array, " d"]) -> Float[Array, ""]:
        """Return f(x), the estimated log-odds of the label +1.

        Args:
          token: x, shape (d,).

        Returns:
          f(x), shape ().

        Transformations: jit, vmap, grad.
        """
        gate = jax.nn.sigmoid(self.gate_offset + self.gate_slope @ token)
        return self.slope @ token + self.intercept + self.height * gate


@public
def label_tokens(mixture: GaussianMixture) -> GaussianMixture:
    r"""Return the distribution of `(X, Y)` in $R^{d+1}$, Y = +1 for component 0 and -1 for component 1.

    Args:
      mixture: two components: log-weights (2,), means (2, d), covariances (2, d, d), which may differ.

    Returns:
      A mixture whose components have no variance in the last coordinate. A head discriminates when the last coordinate
      of its output at the query (x, 0) estimates the log-odds of Y.

    Raises:
      ValueError: unless there are two components.

    Source: [GBB26, section 3]. Transformations: jit, vmap, grad.
    """
    _require_pair("label_tokens", mixture)
    means, covs = mixture.components.mean, mixture.components.cov
    labels = jnp.asarray([[1.0], [-1.0]], means.dtype)
    return GaussianMixture(
        mixture.log_weights,
        Gaussian(jnp.concatenate([means, labels], axis=1), jnp.pad(covs, ((0, 0), (0, 1), (0, 1)))),
    )


@public
def bayes_score(mixture: GaussianMixture) -> GatedScore:
    r"""Return the log-odds of the label given x, `⟨w*, x⟩ + b*`, as a score without a gate.

    Args:
      mixture: two components of one invertible covariance: log-weights (2,), means (2, d), covariances (2, d, d).

    Returns:
      The score, with `w* = Γ⁻¹(m_0 - m_1)` and the gate's offset `log π_0/π_1`.

    Raises:
      ValueError: unless there are two components; if the covariances differ, or float64 is off.

    Source: [GBB26, section 3]. Transformations: jit, vmap, grad.
    """
    _require_pair("bayes_score", mixture)
    cov, means = _shared_cov("bayes_score", mixture), mixture.components.mean
    slope = jnp.linalg.solve(cov, means[0] - means[1])
    odds = mixture.log_weights[0] - mixture.log_weights[1]
    intercept = odds - 0.5 * (means[0] + means[1]) @ slope
    return GatedScore(slope, intercept, 0.0, jnp.zeros_like(slope), odds)


@public
def gated_score(params: Attention, mixture: GaussianMixture) -> GatedScore:
    r"""Return the last coordinate of `attend(params, label_tokens(mixture), (x, 0))` as a function of x.

    Args:
      params: a head on $R^{d+1}$: U of shape (d+1, d+1) and V of shape (e, d+1), whose last row counts.
      mixture: two components of one covariance, which may be singular.

    Returns:
      The score: `w = U_11 Γ v_21`, `b = ⟨v_21, m_1⟩ - v_22`, `r = ⟨v_21, m_0 - m_1⟩ + 2 v_22`,
      `s = 2 u_12 + U_11 (m_0 - m_1)`, `s_0 = log π_0/π_1`, with the blocks of Uᵀ and the components' numbers from 0.

    Raises:
      ValueError: unless there are two components and d + 1 columns; if the covariances differ, or float64 is off.

    Source: [GBB26, eqs 6 and 7, Lemma B.1]. Transformations: jit, vmap, grad.
    """
    _require_pair("gated_score", mixture)
    cov, means = _shared_cov("gated_score", mixture), mixture.components.mean
    d = means.shape[1]
    if params.bilinear.shape != (d + 1, d + 1):
        raise ValueError(
            f"`gated_score(params=...)` needs a head on R^{d + 1}: tokens are labelled. Got U of shape "
            f"{params.bilinear.shape}."
        )
    transposed, row = params.bilinear.T, params.value[-1]
    difference = means[0] - means[1]
    return GatedScore(
        slope=transposed[:d, :d] @ cov @ row[:d],
        intercept=row[:d] @ means[1] - row[d],
        height=row[:d] @ difference + 2 * row[d],
        gate_slope=2 * transposed[:d, d] + transposed[:d, :d] @ difference,
        gate_offset=mixture.log_weights[0] - mixture.log_weights[1],
    )


@public
def discriminant_excess(mixture: GaussianMixture, score: GatedScore, *, nodes: int = 128) -> Float[Array, ""]:
    r"""Return `E KL(η(X) ‖ σ(f(X)))`, the logistic risk of a score f above `discriminant_bayes_risk`.

    It is zero where w = w* and either r = 0 and b = b*, or s = 0 and $b + r σ(s_0) = b*$, with w* and b* of
    `bayes_score`. Through `gated_score` it is the excess risk of a head, whose gradient flow `gradient_flow` solves.

    Args:
      mixture: two components of one invertible covariance: log-weights (2,), means (2, d), covariances (2, d, d).
      score: the score f. $Γ^{1/2}$ times w*, w and s span at most two dimensions, as for d ≤ 2 and for s = 0.
      nodes: nodes per dimension and component; static. 128 give 1e-9 for gates with $‖Γ^{1/2} s‖$ up to 7.

    Returns:
      The excess in nats, shape (). It is a sum of terms that are not negative, so a small one keeps its digits.

    Raises:
      ValueError: unless there are two components; if the covariances differ, three dimensions are spanned, or float64
        is off.

    Source: derived here; the risk is that of [GBB26, section 3]. Transformations: jit, vmap, grad (first derivatives).
    """
    owner = "discriminant_excess"
    _require_pair(owner, mixture)
    cov, means = _shared_cov(owner, mixture), mixture.components.mean
    bayes = bayes_score(mixture)
    root = jnp.linalg.cholesky(cov)
    if means.shape[1] > 2:
        directions = stop_gradient(jnp.stack([bayes.slope, score.slope, score.gate_slope]) @ root)
        _, sizes, axes = jnp.linalg.svd(directions, full_matrices=False)
        axes = require_now_or_then(
            axes[:2],
            sizes[2] <= 1e-9 * sizes[0],
            f"`{owner}(score=...)` needs slopes that span at most two dimensions, because it integrates over "
            "their span.",
            lambda: f"Got singular values {sizes}.",
        )
        root = root @ axes.T
    normals, weights = _normal_grid(root.shape[1], nodes)

    def component(mean):
        tokens = mean + normals @ root.T
        odds = jax.vmap(bayes)(tokens)
        return weights @ _bernoulli_divergence(odds, jax.vmap(score)(tokens) - odds)

    return jnp.exp(_log_weights(mixture)) @ jax.vmap(component)(means)


# --- the three risks at a resolution ----------------------------------------------------------------------------------


class _Estimate(NamedTuple):
    """A risk and an absolute bound of its rounding, without that of long sums."""

    value: Float[Array, ""]
    rounding: Float[Array, ""]


class _Refinement(NamedTuple):
    """A factor on the needed number of nodes, and by how much the exponent decreases within the window."""

    factor: float = 1.0
    drop: float = 45.0


_REFINEMENTS = (_Refinement(), _Refinement(factor=1.5), _Refinement(factor=1.5, drop=63.0))


def _denoising_bayes(mixture, noise_std, *, refinement=_REFINEMENTS[0]) -> _Estimate:
    owner = "denoising_bayes_risk"
    cov = _shared_cov(owner, mixture)
    noise_std = _noise(owner, noise_std)
    means = _planar_means(owner, mixture)
    noiseless = noise_std**2 < SMALLEST_VARIANCE
    variance = jnp.where(noiseless, 1.0, noise_std) ** 2
    whitening = _whitening(cov, variance)
    within = variance * jnp.sum(whitening.eigenvalues / (whitening.eigenvalues + variance))
    error = jnp.sum((variance / (whitening.eigenvalues + variance)) ** 2) * whitening.residual
    differences = means - means[0]
    whitened = differences @ whitening.matrix.T
    moved = variance * whitened @ whitening.matrix
    between, between_error = _confusion(_log_weights(mixture), whitened, moved, whitening, refinement)
    value, rounding = within + between, error + between_error
    return _Estimate(*(jnp.where(noiseless, 0.0, each) for each in (value, rounding)))


def _denoising_linear(mixture, noise_std, *, intercept=False, refinement=_REFINEMENTS[0]) -> _Estimate:
    del refinement
    owner = "denoising_linear_risk"
    cov = _shared_cov(owner, mixture)
    noise_std = _noise(owner, noise_std)
    weights = jnp.exp(_log_weights(mixture))
    means = mixture.components.mean
    if intercept:
        means = means - weights @ means
    moment = cov + (weights[:, None] * means).T @ means
    noiseless = noise_std**2 < SMALLEST_VARIANCE
    variance = jnp.where(noiseless, 1.0, noise_std) ** 2
    eigenvalues = _whitening(moment, variance).eigenvalues
    value = jnp.sum(eigenvalues * (variance / (eigenvalues + variance)))
    # of the moment's sum and of its eigenvalues
    uncertain = len(moment) * EPS * (4 * jnp.max(eigenvalues) + 8 * jnp.max(weights @ means**2))
    rounding = uncertain * jnp.sum((variance / (eigenvalues + variance)) ** 2)
    return _Estimate(*(jnp.where(noiseless, 0.0, each) for each in (value, rounding)))


def _discriminant(mixture, *, refinement=_REFINEMENTS[0]) -> _Estimate:
    owner = "discriminant_bayes_risk"
    _require_pair(owner, mixture)
    cov = _shared_cov(owner, mixture)
    means = mixture.components.mean
    difference = means[1] - means[0]
    whitening = _whitening(cov, jnp.zeros(()))
    outside = jnp.max(jnp.abs(difference - whitening.projection @ difference))
    separable = outside > 16 * len(cov) * EPS * jnp.max(jnp.abs(means))
    whitened = whitening.matrix @ difference
    distance = jnp.where(separable, 0.0, whitened @ _unit(stop_gradient(whitened)))
    centres = jnp.stack([jnp.zeros(()), distance])[:, None]
    entropy = _pair_integrals(_label_entropy, _log_weights(mixture), centres, refinement)[0]
    change = whitening.residual * jnp.sum((whitening.matrix.T @ whitened) ** 2) + 4 * EPS * (1 + distance**2)
    return _Estimate(*(jnp.where(separable, 0.0, each) for each in (entropy, entropy * change)))


_ESTIMATES: dict[Callable, Callable[..., _Estimate]] = {
    denoising_bayes_risk: _denoising_bayes,
    denoising_linear_risk: _denoising_linear,
    discriminant_bayes_risk: _discriminant,
}


def _confusion(log_weights, whitened, moved, whitening, refinement) -> _Estimate:
    """`Σ_{k<l} ‖moved_k - moved_l‖² ∫ p_k p_l / Σ_j p_j`: what not knowing the component adds to the risk."""
    first, second = np.triu_indices(len(log_weights), 1)
    if not first.size:
        return _Estimate(jnp.zeros(()), jnp.zeros(()))
    centres, lost = _coordinates(whitened)
    overlaps = _pair_integrals(_overlap, log_weights, centres, refinement)
    terms = jnp.sum((moved[first] - moved[second]) ** 2, axis=1) * overlaps
    squared_distances = jnp.sum((whitened[first] - whitened[second]) ** 2, axis=1)
    # ‖S⁻¹(m_k - m_l)‖² and ‖S⁻¹‖ times an error of S change a squared distance and the factor of an overlap
    solved = jnp.sum(((whitened[first] - whitened[second]) @ whitening.matrix) ** 2, axis=1)
    change = whitening.residual * (solved + 2 * jnp.max(whitening.inverse)) + 4 * EPS * squared_distances + lost**2
    return _Estimate(jnp.sum(terms), jnp.sum(terms * change))


# --- integrals over a line or a plane ---------------------------------------------------------------------------------


def _overlap(log_densities, first, second):
    """`p_k p_l / Σ_j p_j` of the pair (k, l)."""
    pair = jnp.take(log_densities, first, axis=-1) + jnp.take(log_densities, second, axis=-1)
    return jnp.exp(pair - logsumexp(log_densities, axis=-1))


def _label_entropy(log_densities, first, second):
    """`Σ_k p_k log(Σ_j p_j / p_k)` of two components."""
    one, other = jnp.take(log_densities, first, axis=-1), jnp.take(log_densities, second, axis=-1)
    return jnp.exp(one) * jax.nn.softplus(other - one) + jnp.exp(other) * jax.nn.softplus(one - other)


def _pair_integrals(
    integrand: Callable, log_weights: Float[Array, " K"], centres: Float[Array, "K r"], refinement: _Refinement
) -> Float[Array, " pairs"]:
    """Return integrals over R^r, r = 1 or 2, of an integrand that is at most about the smaller density of each pair.

    Each pair has a separate window. Along the line through the centres it covers the points where the smaller density
    is above e^{-drop} times its maximum. If the values are concrete, it has as many nodes as its steepest posterior
    needs. Nodes do not move with the arguments, so derivatives of the sums are those of the integrals.
    """
    if is_concrete(log_weights, centres):
        windows = _windows(log_weights, centres, refinement.drop)
        needed = [float(jnp.max(each)) for each in (windows.along, windows.across)]
    else:
        needed = [1000.0, 500.0]
    fewest, most = (256, 2**16) if centres.shape[1] == 1 else (64, 2**11)
    # in powers of four, so that few programs are compiled
    sizes = [min(fewest * 4 ** max(0, int(np.ceil(np.log2(each / fewest) / 2))), most) for each in needed]
    along, across = (int(refinement.factor * size) for size in sizes)
    return _trapezoid(log_weights, centres, integrand=integrand, drop=refinement.drop, along=along, across=across)


class _Windows(NamedTuple):
    """For each pair, its middle, its axes, the ends of the window along the first axis, and the number of nodes."""

    middle: Float[Array, "pairs r"]
    axes: Float[Array, "pairs r r"]
    low: Float[Array, " pairs"]
    high: Float[Array, " pairs"]
    along: Float[Array, " pairs"]
    across: Float[Array, " pairs"]


@partial(jax.jit, static_argnames=("integrand", "drop", "along", "across"))
def _trapezoid(log_weights, centres, *, integrand, drop, along, across):
    first, second = np.triu_indices(len(log_weights), 1)
    windows = _windows(stop_gradient(log_weights), stop_gradient(centres), drop)
    nodes = np.sqrt(2 * drop) * np.linspace(-1.0, 1.0, across)
    plane = centres.shape[1] == 2

    def pair(of):
        k, l, window = of  # noqa: E741
        places = (centres - window.middle) @ window.axes.T
        step = (window.high - window.low) / (along - 1)

        @jax.checkpoint
        def line(i):
            logs = log_weights - 0.5 * (window.low + step * i - places[:, 0]) ** 2 - 0.5 * np.log(2 * np.pi)
            if not plane:
                return integrand(logs, k, l)
            logs = logs - 0.5 * (nodes[:, None] - places[:, 1]) ** 2 - 0.5 * np.log(2 * np.pi)
            return (nodes[1] - nodes[0]) * jnp.sum(integrand(logs, k, l))

        lines = max(1, 4096 // across) if plane else along
        return step * jnp.sum(jax.lax.map(line, jnp.arange(along), batch_size=lines))

    return jax.lax.map(pair, (jnp.asarray(first), jnp.asarray(second), windows))


@partial(jax.jit, static_argnames=("drop",))
def _windows(log_weights, centres, drop) -> _Windows:
    first, second = np.triu_indices(len(log_weights), 1)
    pairs = jax.vmap(partial(_window, log_weights, centres, drop))
    return pairs(jnp.asarray(first), jnp.asarray(second))


def _window(log_weights, centres, drop, k, l) -> _Windows:  # noqa: E741
    """The window of the pair (k, l): the logarithm of √(p_k p_l) / 2cosh(log-odds/2) is concave along its line."""
    difference = centres[l] - centres[k]
    direction = _unit(difference)
    distance = difference @ direction
    middle = 0.5 * (centres[k] + centres[l])
    odds = log_weights[l] - log_weights[k]
    reach = np.sqrt(2 * drop)

    def log_density(u):
        half = 0.5 * jnp.abs(odds + distance * u)
        return -0.5 * u**2 - half - jnp.log1p(jnp.exp(-2 * half))

    slope_falls = lambda u: u + 0.5 * distance * jnp.tanh(0.5 * (odds + distance * u)) > 0  # noqa: E731
    mode = _bisect(slope_falls, -0.5 * distance, 0.5 * distance)
    floor = log_density(mode) - drop
    low = _bisect(lambda u: log_density(u) > floor, mode - reach, mode)
    high = _bisect(lambda u: log_density(u) < floor, mode, mode + reach)

    axes = direction[None] if direction.size == 1 else jnp.stack([direction, direction[::-1] * np.array([-1.0, 1.0])])
    places = (centres - middle) @ axes.T
    # Where in the window a component's posterior changes: its log-odds against both of the pair are not all below
    # -drop, where it is negligible; nor all above drop, where the pair is.
    ends = jnp.stack([jnp.stack([low, high]), reach * np.array([-1.0, 1.0])])[: places.shape[1]]
    centre, halfwidth = ends.mean(axis=1), 0.5 * (ends[:, 1] - ends[:, 0])
    log_odds = log_weights - 0.5 * jnp.sum((places - centre) ** 2, axis=1)
    log_odds = log_odds - jnp.stack([log_odds[k], log_odds[l]])[:, None]
    spread = jnp.abs(places - jnp.stack([places[k], places[l]])[:, None]) @ halfwidth
    matters = jnp.all(log_odds + spread > -drop, axis=0) & jnp.any(log_odds - spread < drop, axis=0)
    matters = matters.at[jnp.stack([k, l])].set(True)
    steepness = jnp.max(jnp.where(matters[:, None], places, -jnp.inf), axis=0)
    steepness -= jnp.min(jnp.where(matters[:, None], places, jnp.inf), axis=0)
    # The trapezoid's error is e^{-2π²/(step · steepness)}, for smooth integrands as if they had a steepness of 1.
    count = 1 + 2 * halfwidth * jnp.maximum(steepness, 1.0) / LARGEST_STEP
    return _Windows(middle, axes, low, high, count[0], count[-1])


def _bisect(beyond, low, high):
    """Where `beyond` turns true between `low` and `high`."""

    def halve(_, ends):
        middle = 0.5 * (ends[0] + ends[1])
        found = beyond(middle)
        return jnp.where(found, ends[0], middle), jnp.where(found, middle, ends[1])

    return jax.lax.fori_loop(0, 60, halve, (low, high))[1]


# --- linear algebra whose first derivatives hold for equal eigenvalues too --------------------------------------------


class _Whitening(NamedTuple):
    """A matrix W with `Wᵀ W = S⁻¹` on the range of the covariance S = Γ + variance · I, and related quantities of S."""

    matrix: Float[Array, "d d"]
    eigenvalues: Float[Array, " d"]
    inverse: Float[Array, " d"]
    projection: Float[Array, "d d"]
    residual: Float[Array, ""]


def _whitening(cov: Float[Array, "d d"], variance: Float[Array, ""]) -> _Whitening:
    fixed = stop_gradient(cov)
    eigenvalues, vectors = jnp.linalg.eigh(fixed)
    eigenvalues = jnp.maximum(eigenvalues, 0.0)
    total = eigenvalues + stop_gradient(variance)
    kept = total > jnp.where(variance > 0, 0.0, len(cov) * EPS * jnp.max(eigenvalues))
    inverse = jnp.where(kept, 1 / jnp.where(kept, total, 1.0), 0.0)
    root = jnp.sqrt(inverse)[:, None] * vectors.T
    # a zero that carries the derivative of S: W = S^{-1/2} up to a rotation, so dW = -½ W dS Wᵀ W
    change = cov - fixed + (variance - stop_gradient(variance)) * jnp.eye(len(cov))
    return _Whitening(
        matrix=root - 0.5 * root @ change @ root.T @ root,
        eigenvalues=eigenvalues + jnp.diag(vectors.T @ (cov - fixed) @ vectors),
        inverse=inverse,
        projection=jnp.where(kept, vectors, 0.0) @ vectors.T,
        residual=jnp.linalg.norm(fixed - (vectors * eigenvalues) @ vectors.T),
    )


def _coordinates(points: Float[Array, "K d"]) -> tuple[Float[Array, "K r"], Float[Array, ""]]:
    """Coordinates in the plane, or the line if possible, through all points, and the largest distance from it."""
    if len(points) == 2:
        axis = _unit(stop_gradient(points[1] - points[0]))
        return (points - points[0]) @ axis[:, None], jnp.zeros(())
    _, sizes, axes = jnp.linalg.svd(stop_gradient(points), full_matrices=False)
    rank = min(2, len(sizes))
    if is_concrete(sizes) and rank == 2 and sizes[1] <= TOLERANCE * sizes[0]:
        rank = 1
    return points @ axes[:rank].T, sizes[rank] if rank < len(sizes) else jnp.zeros(())


def _unit(vector: Float[Array, " d"]) -> Float[Array, " d"]:
    """The vector's direction; the first axis for a zero vector."""
    largest = jnp.max(jnp.abs(vector))
    scaled = vector / jnp.where(largest > 0, largest, 1.0)
    length = jnp.linalg.norm(jnp.where(largest > 0, scaled, 1.0))
    return jnp.where(largest > 0, scaled / length, jnp.eye(len(vector))[0])


def _posterior_mean(mixture, cov, variance, query):
    means = mixture.components.mean
    total = cov + variance * jnp.eye(len(cov))
    centred = query - means
    log_posterior = log_softmax(mixture.log_weights) - 0.5 * jnp.sum(centred.T * jnp.linalg.solve(total, centred.T), 0)
    return query - variance * jnp.linalg.solve(total, jax.nn.softmax(log_posterior) @ centred)


def _bernoulli_divergence(odds: Float[Array, " n"], change: Float[Array, " n"]) -> Float[Array, " n"]:
    """`KL(Ber(σ(a)) ‖ Ber(σ(a + δ)))` for log-odds a and a change δ, by its series where the difference cancels."""
    chance, opposite = jax.nn.sigmoid(odds), jax.nn.sigmoid(-odds)
    small = jnp.abs(change) < 1e-3
    near, far = jnp.where(small, change, 0.0), jnp.where(small, 1.0, change)
    skew = opposite - chance
    fourth = 1 - 6 * chance * opposite
    series = chance * opposite * near**2 * (1 / 2 + skew * near / 6 + fourth * near**2 / 24)
    exact = jax.nn.softplus(odds + far) - jax.nn.softplus(odds) - chance * far
    return jnp.where(small, series, jnp.maximum(exact, 0.0))


def _normal_grid(dimension: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """A trapezoid for standard normals in one or two dimensions: its nodes and weights."""
    line = np.linspace(-9.0, 9.0, nodes)
    weights = np.exp(-0.5 * line**2) * (line[1] - line[0]) / np.sqrt(2 * np.pi)
    if dimension == 1:
        return line[:, None], weights
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2), np.outer(weights, weights).ravel()


# --- arguments --------------------------------------------------------------------------------------------------------


def _log_weights(mixture: GaussianMixture) -> Float[Array, " K"]:
    return jnp.maximum(log_softmax(mixture.log_weights), SMALLEST_LOG_WEIGHT)


def _noise(owner: str, noise_std: Scalar) -> Float[Array, ""]:
    noise_std = as_float(noise_std)
    if noise_std.shape != ():
        raise ValueError(f"`{owner}(noise_std=...)` must be one number; use `jax.vmap`. Got shape {noise_std.shape}.")
    require_finite(owner, "noise_std", noise_std, "it is a standard deviation.")
    if is_concrete(noise_std) and noise_std < 0:
        raise ValueError(f"`{owner}(noise_std=...)` must be at least 0: it is a standard deviation. Got {noise_std}.")
    return noise_std.astype(np.float64)


def _positive_noise(owner: str, noise_std: Scalar) -> Float[Array, ""]:
    noise_std = _noise(owner, noise_std)
    require_positive(owner, "noise_std", noise_std, "the denoiser divides by the covariance of noisy tokens.")
    return noise_std


def _require_pair(owner: str, mixture: GaussianMixture) -> None:
    if (count := mixture.log_weights.size) != 2:
        raise ValueError(f"`{owner}(mixture=...)` needs two components, because a label is +1 or -1. Got {count}.")


def _shared_cov(owner: str, mixture: GaussianMixture) -> Float[Array, "d d"]:
    require_float64(owner, mixture.components.mean)
    covs = mixture.components.cov
    require_float64(owner, covs)
    spread, largest = jnp.max(jnp.abs(covs - covs[0])), jnp.max(jnp.abs(covs[0]))
    return require_now_or_then(
        covs[0],
        spread <= TOLERANCE * largest,
        f"`{owner}(mixture=...)` needs components with equal covariances, because only then are posterior log-odds of "
        "components linear in a token.",
        lambda: f"Got covariances whose entries differ by {spread:.3g}; the largest entry is {largest:.3g}.",
    )


def _planar_means(owner: str, mixture: GaussianMixture) -> Float[Array, "K d"]:
    means = mixture.components.mean
    if min(len(means) - 1, means.shape[1]) <= 2:
        return means
    third, largest = jnp.linalg.svd(means - means[0], compute_uv=False)[2], jnp.max(jnp.abs(means))
    return require_now_or_then(
        means,
        third <= TOLERANCE * largest,
        f"`{owner}(mixture=...)` needs means whose differences span at most two dimensions, because it integrates over "
        "their span.",
        lambda: f"Got differences of means with a third singular value of {third:.3g}.",
    )
