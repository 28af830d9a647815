r"""Gaussian mixtures with one covariance: the risks of denoising and of discrimination.

Tokens come from `Σ_k π_k N(m_k, Γ)`. Denoising sees `Z = X + ξ ε`, whose components have the covariance `S = Γ + ξ² I`;
the Bayes denoiser is affine in each component and gated by the posterior of the component [GBB26]. Discrimination
predicts which of two components a token comes from. Both Bayes risks depend on the means through their differences
in units of the components' standard deviations, so an integral over the span of these differences is exact:

    E‖X - E[X|Z]‖² = ξ² tr(Γ S⁻¹) + Σ_{k<l} ‖ξ² S⁻¹(m_k - m_l)‖² ∫ p_k p_l / Σ_j p_j,   p_k = π_k N(·; S^{-1/2} m_k, I).

Every term is positive, so small risks keep their digits. Derived here.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import (
    as_array,
    as_float,
    is_concrete,
    public,
    require_finite,
    require_float64,
    require_now_or_then,
)
from lib._namespace import constant, jitted, known, log_softmax, logsumexp, namespace, softplus
from lib._types import AnyArray, Scalar
from lib.measures import GaussianMixture
from lib.partition import _crossing

__all__ = ["denoising_bayes_risk", "denoising_linear_risk", "discriminant_bayes_risk", "mixture_quadrature_error"]

# Covariances are equal, and means span a plane, up to this part of their largest entry.
_TOLERANCE = 1e-12
# Rounding of a sum of up to 1e7 positive terms.
_ROUNDING = 1e-13
# Weights below e^{-1e5} are zero in float64; a finite logarithm keeps differences of two of them defined.
_SMALLEST_LOG_WEIGHT = -1e5
# Step of the trapezoids times the steepness of a posterior: an error of e^{-2π²/0.5} = 7e-18.
_LARGEST_STEP = 0.5
_EPS = float(np.finfo(np.float64).eps)
# Below this variance noise is none: its square root is 1e-154.
_SMALLEST_VARIANCE = float(np.finfo(np.float64).tiny)
_LOG_ROOT = 0.5 * math.log(2 * math.pi)
# Nodes of one block, which fit a processor's cache.
_BLOCK = 4096


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
      to seconds for ten components in a plane. Traced mixtures take seconds to compile.

    Raises:
      ValueError: if the covariances differ by more than 1e-12 of their largest entry, the differences of the means span
        more than two dimensions, ξ is negative or not finite, or float64 is off. Inside `jit` and `vmap` the first two
        raise at run time, and the others pass unseen.

    Source: derived here; for two components of equal norm, balanced and isotropic, it is the risk of [GBB26, eq. 10].
    Transformations: jit and vmap (on a grid that resolves components up to 30 standard deviations apart), grad (first
    derivatives).
    """
    return as_array(_denoising_bayes(mixture, noise_std).value)


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
    return as_array(_denoising_linear(mixture, noise_std, intercept=intercept).value)


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
    return as_array(_discriminant(mixture).value)


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
    xp = namespace(here.value)
    change = xp.maximum(xp.abs(finer.value - here.value), xp.abs(farther.value - here.value))
    scale = xp.where(here.value == 0, 1.0, here.value)
    return as_array(xp.where(here.value == 0, 0.0, (2 * change + here.rounding) / scale + _ROUNDING))


# --- the three risks at a resolution ----------------------------------------------------------------------------------


class _Estimate(NamedTuple):
    """A risk and an absolute bound of its rounding, without that of long sums."""

    value: Scalar
    rounding: Scalar


class _Refinement(NamedTuple):
    """A factor on the needed number of nodes, and by how much the exponent decreases within the window."""

    factor: float = 1.0
    drop: float = 45.0


_REFINEMENTS = (_Refinement(), _Refinement(factor=1.5), _Refinement(factor=1.5, drop=63.0))


def _denoising_bayes(mixture, noise_std, *, refinement=_REFINEMENTS[0]) -> _Estimate:
    owner = "denoising_bayes_risk"
    mixture, cov = _with_shared_cov(owner, mixture)
    noise_std = _noise(owner, noise_std)
    means = _planar_means(owner, mixture)
    xp = namespace(cov, noise_std, means)
    noiseless = noise_std**2 < _SMALLEST_VARIANCE
    variance = xp.where(noiseless, 1.0, noise_std) ** 2
    whitening = _whitening(cov, variance)
    within = variance * xp.sum(whitening.eigenvalues / (whitening.eigenvalues + variance))
    error = xp.sum((variance / (whitening.eigenvalues + variance)) ** 2) * whitening.residual
    differences = means - means[0]
    whitened = differences @ whitening.matrix.T
    moved = variance * whitened @ whitening.matrix
    between, between_error = _confusion(_log_weights(mixture), whitened, moved, whitening, refinement)
    value, rounding = within + between, error + between_error
    return _Estimate(*(xp.where(noiseless, 0.0, each) for each in (value, rounding)))


def _denoising_linear(mixture, noise_std, *, intercept=False, refinement=_REFINEMENTS[0]) -> _Estimate:
    del refinement
    owner = "denoising_linear_risk"
    mixture, cov = _with_shared_cov(owner, mixture)
    return _affine_estimate(_log_weights(mixture), mixture.components.mean, cov, _noise(owner, noise_std), intercept)


@jitted(static=(4,))
def _affine_estimate(log_weights, means, cov, noise_std, intercept) -> _Estimate:
    """The risk of the best affine denoiser, or of the best linear one."""
    xp = namespace(log_weights, means, cov, noise_std)
    weights = xp.exp(log_weights)
    if intercept:
        means = means - weights @ means
    moment = cov + (weights[:, None] * means).T @ means
    noiseless = noise_std**2 < _SMALLEST_VARIANCE
    variance = xp.where(noiseless, 1.0, noise_std) ** 2
    eigenvalues = _whitening(moment, variance).eigenvalues
    value = xp.sum(eigenvalues * (variance / (eigenvalues + variance)))
    # of the moment's sum and of its eigenvalues
    uncertain = len(moment) * _EPS * (4 * xp.max(eigenvalues) + 8 * xp.max(weights @ means**2))
    rounding = uncertain * xp.sum((variance / (eigenvalues + variance)) ** 2)
    return _Estimate(*(xp.where(noiseless, 0.0, each) for each in (value, rounding)))


def _discriminant(mixture, *, refinement=_REFINEMENTS[0]) -> _Estimate:
    owner = "discriminant_bayes_risk"
    _require_pair(owner, mixture)
    mixture, cov = _with_shared_cov(owner, mixture)
    means = mixture.components.mean
    xp = namespace(cov, means)
    difference = means[1] - means[0]
    whitening = _whitening(cov, np.zeros(()))
    outside = xp.max(xp.abs(difference - whitening.projection @ difference))
    separable = outside > 16 * len(cov) * _EPS * xp.max(xp.abs(means))
    whitened = whitening.matrix @ difference
    distance = xp.where(separable, 0.0, whitened @ _unit(*constant(whitened)))
    centres = xp.stack([xp.zeros(()), distance])[:, None]
    entropy = _pair_integrals(_label_entropy, _log_weights(mixture), centres, refinement)[0]
    change = whitening.residual * xp.sum((whitening.matrix.T @ whitened) ** 2) + 4 * _EPS * (1 + distance**2)
    return _Estimate(*(xp.where(separable, 0.0, each) for each in (entropy, entropy * change)))


_ESTIMATES: dict[Callable, Callable[..., _Estimate]] = {
    denoising_bayes_risk: _denoising_bayes,
    denoising_linear_risk: _denoising_linear,
    discriminant_bayes_risk: _discriminant,
}


def _confusion(log_weights, whitened, moved, whitening, refinement) -> _Estimate:
    """`Σ_{k<l} ‖moved_k - moved_l‖² ∫ p_k p_l / Σ_j p_j`: what not knowing the component adds to the risk."""
    xp = namespace(log_weights, whitened, moved)
    first, second = np.triu_indices(len(log_weights), 1)
    if not first.size:
        return _Estimate(xp.zeros(()), xp.zeros(()))
    centres, lost = _coordinates(whitened)
    overlaps = _pair_integrals(_overlap, log_weights, centres, refinement)
    terms = xp.sum((moved[first] - moved[second]) ** 2, axis=1) * overlaps
    squared_distances = xp.sum((whitened[first] - whitened[second]) ** 2, axis=1)
    # ‖S⁻¹(m_k - m_l)‖² and ‖S⁻¹‖ times an error of S change a squared distance and the factor of an overlap
    solved = xp.sum(((whitened[first] - whitened[second]) @ whitening.matrix) ** 2, axis=1)
    change = whitening.residual * (solved + 2 * xp.max(whitening.inverse)) + 4 * _EPS * squared_distances + lost**2
    return _Estimate(xp.sum(terms), xp.sum(terms * change))


# --- integrals over a line or a plane ---------------------------------------------------------------------------------


def _overlap(log_densities, first, second):
    """`p_k p_l / Σ_j p_j` of the pair (k, l); components along the first axis."""
    pair = log_densities[first] + log_densities[second]
    return namespace(pair).exp(pair - logsumexp(log_densities, axis=0))


def _label_entropy(log_densities, first, second):
    """`Σ_k p_k log(Σ_j p_j / p_k)` of two components, along the first axis."""
    one, other = log_densities[first], log_densities[second]
    xp = namespace(one)
    return xp.exp(one) * softplus(other - one) + xp.exp(other) * softplus(one - other)


def _pair_integrals(
    integrand: Callable, log_weights: Float[AnyArray, " K"], centres: Float[AnyArray, "K r"], refinement: _Refinement
) -> Float[AnyArray, " pairs"]:
    """Return integrals over R^r, r = 1 or 2, of an integrand that is at most about the smaller density of each pair."""
    windows = _windows(*constant(log_weights, centres), refinement.drop)
    in_numpy = namespace(log_weights, centres) is np
    needed = [np.max(each) for each in (windows.along, windows.across)] if in_numpy else [1000.0, 500.0]
    fewest, most = (256, 2**16) if centres.shape[1] == 1 else (64, 2**11)
    # in powers of four, so that nearly equal mixtures have equal grids
    sizes = [min(fewest * 4 ** max(0, math.ceil(math.log2(each / fewest) / 2)), most) for each in needed]
    along, across = (int(refinement.factor * size) for size in sizes)
    return _trapezoid(log_weights, centres, windows, integrand, (refinement.drop, along, across))


class _Windows(NamedTuple):
    """For each pair, its middle, its axes, the ends of the window along the first axis, and the number of nodes."""

    middle: Float[AnyArray, "pairs r"]
    axes: Float[AnyArray, "pairs r r"]
    low: Float[AnyArray, " pairs"]
    high: Float[AnyArray, " pairs"]
    along: Float[AnyArray, " pairs"]
    across: Float[AnyArray, " pairs"]


@jitted(static=(3, 4))
def _trapezoid(log_weights, centres, windows, integrand, grid):
    xp, (drop, along, across) = namespace(log_weights, centres), grid
    first, second = np.triu_indices(len(log_weights), 1)
    nodes = np.sqrt(2 * drop) * np.linspace(-1.0, 1.0, across)
    plane = centres.shape[1] == 2
    block = max(1, _BLOCK // across) if plane else along

    def pair(of):
        k, l, window = of  # noqa: E741
        places = (centres - window.middle) @ window.axes.T
        step = (window.high - window.low) / (along - 1)

        def lines(rows):
            """Return the integrals across the window at some nodes along it."""
            logs = log_weights[:, None] - 0.5 * (window.low + step * rows - places[:, :1]) ** 2 - _LOG_ROOT
            if not plane:
                return integrand(logs, k, l)
            logs = logs[..., None] - 0.5 * (nodes - places[:, 1:, None]) ** 2 - _LOG_ROOT
            return (nodes[1] - nodes[0]) * xp.sum(integrand(logs, k, l), axis=-1)

        rows = np.arange(along)
        if xp is np:
            return step * sum(np.sum(lines(part)) for part in np.split(rows, range(block, along, block)))
        return step * jnp.sum(jax.lax.map(jax.checkpoint(lines), jnp.asarray(rows)[:, None], batch_size=block))

    pairs = first, second, windows
    if xp is np:
        return np.array([pair((*of[:2], _Windows(*of[2:]))) for of in zip(first, second, *windows, strict=True)])
    return jax.lax.map(pair, jax.tree.map(jnp.asarray, pairs))


@jitted(static=(2,))
def _windows(log_weights, centres, drop) -> _Windows:
    """The windows of all pairs: the logarithm of √(p_k p_l) / 2cosh(log-odds/2) is concave along a pair's line."""
    xp = namespace(log_weights, centres)
    first, second = np.triu_indices(len(log_weights), 1)
    difference = centres[second] - centres[first]
    direction = _unit(difference)
    distance = xp.sum(difference * direction, axis=1)
    middle = 0.5 * (centres[first] + centres[second])
    odds = log_weights[second] - log_weights[first]
    reach = math.sqrt(2 * drop)

    def log_density(u):
        half = 0.5 * xp.abs(odds + distance * u)
        return -0.5 * u**2 - half - xp.log1p(xp.exp(-2 * half))

    density_rises = lambda u: u + 0.5 * distance * xp.tanh(0.5 * (odds + distance * u)) <= 0  # noqa: E731
    mode = _crossing(density_rises, -0.5 * distance, 0.5 * distance, halvings=60)
    floor = log_density(mode) - drop
    low = _crossing(lambda u: log_density(u) <= floor, mode - reach, mode, halvings=60)
    high = _crossing(lambda u: log_density(u) >= floor, mode, mode + reach, halvings=60)

    rotated = direction[:, ::-1] * np.array([-1.0, 1.0])[: centres.shape[1]]
    axes = xp.stack([direction, rotated], axis=1)[:, : centres.shape[1]]
    places = (centres - middle[:, None]) @ xp.swapaxes(axes, 1, 2)
    # Where in the window a component's posterior changes: its log-odds against both of the pair are not all below
    # -drop, where it is negligible; nor all above drop, where the pair is.
    across = xp.full_like(low, reach)
    ends = xp.stack([xp.stack([low, -across]), xp.stack([high, across])], axis=-1)[: centres.shape[1]]
    centre, halfwidth = (
        xp.swapaxes(each, 0, 1)[:, None] for each in (ends.mean(axis=-1), 0.5 * (ends[..., 1] - ends[..., 0]))
    )
    log_odds = log_weights - 0.5 * xp.sum((places - centre) ** 2, axis=-1)
    rows, own = np.arange(len(first)), np.stack([first, second])
    log_odds = log_odds - log_odds[rows, own][..., None]
    spread = xp.sum(xp.abs(places - places[rows, own][:, :, None]) * halfwidth, axis=-1)
    matters = xp.all(log_odds + spread > -drop, axis=0) & xp.any(log_odds - spread < drop, axis=0)
    matters = (matters | (np.arange(len(log_weights)) == own[..., None]).any(axis=0))[..., None]
    steepness = xp.max(xp.where(matters, places, -xp.inf), axis=1) - xp.min(xp.where(matters, places, xp.inf), axis=1)
    # The trapezoid's error is e^{-2π²/(step · steepness)}, for smooth integrands as if they had a steepness of 1.
    count = 1 + 2 * halfwidth[:, 0] * xp.maximum(steepness, 1.0) / _LARGEST_STEP
    return _Windows(middle, axes, low, high, count[:, 0], count[:, -1])


# --- linear algebra whose first derivatives hold for equal eigenvalues too --------------------------------------------


class _Whitening(NamedTuple):
    """A matrix W with `Wᵀ W = S⁻¹` on the range of the covariance S = Γ + variance · I, and related quantities of S."""

    matrix: Float[AnyArray, "d d"]
    eigenvalues: Float[AnyArray, " d"]
    inverse: Float[AnyArray, " d"]
    projection: Float[AnyArray, "d d"]
    residual: Scalar


@jitted()
def _whitening(cov: Float[AnyArray, "d d"], variance: Scalar) -> _Whitening:
    xp = namespace(cov, variance)
    fixed, fixed_variance = constant(cov, variance)
    eigenvalues, vectors = xp.linalg.eigh(fixed)
    eigenvalues = xp.maximum(eigenvalues, 0.0)
    total = eigenvalues + fixed_variance
    kept = total > xp.where(variance > 0, 0.0, len(cov) * _EPS * xp.max(eigenvalues))
    inverse = xp.where(kept, 1 / xp.where(kept, total, 1.0), 0.0)
    root = xp.sqrt(inverse)[:, None] * vectors.T
    # a zero that carries the derivative of S: W = S^{-1/2} up to a rotation, so dW = -½ W dS Wᵀ W
    change = cov - fixed + (variance - fixed_variance) * np.eye(len(cov))
    return _Whitening(
        matrix=root - 0.5 * root @ change @ root.T @ root,
        eigenvalues=eigenvalues + xp.diag(vectors.T @ (cov - fixed) @ vectors),
        inverse=inverse,
        projection=xp.where(kept, vectors, 0.0) @ vectors.T,
        residual=xp.linalg.norm(fixed - (vectors * eigenvalues) @ vectors.T),
    )


def _coordinates(points: Float[AnyArray, "K d"]) -> tuple[Float[AnyArray, "K r"], Scalar]:
    """Coordinates in the plane, or the line if possible, through all points, and the largest distance from it."""
    xp, (fixed,) = namespace(points), constant(points)
    if len(points) == 2:
        axis = _unit(fixed[1] - fixed[0])
        return (points - points[0]) @ axis[:, None], xp.zeros(())
    _, sizes, axes = xp.linalg.svd(fixed, full_matrices=False)
    rank = min(2, len(sizes))
    if xp is np and rank == 2 and sizes[1] <= _TOLERANCE * sizes[0]:
        rank = 1
    return points @ axes[:rank].T, sizes[rank] if rank < len(sizes) else xp.zeros(())


@jitted()
def _unit(vector: Float[AnyArray, "*n d"]) -> Float[AnyArray, "*n d"]:
    """The directions of vectors; the first axis for a zero vector."""
    xp = namespace(vector)
    largest = xp.max(xp.abs(vector), axis=-1, keepdims=True)
    scaled = vector / xp.where(largest > 0, largest, 1.0)
    length = xp.linalg.norm(xp.where(largest > 0, scaled, 1.0), axis=-1, keepdims=True)
    return xp.where(largest > 0, scaled / length, np.eye(vector.shape[-1])[0])


# --- arguments --------------------------------------------------------------------------------------------------------


def _log_weights(mixture: GaussianMixture) -> Float[AnyArray, " K"]:
    log_weights = log_softmax(mixture.log_weights)
    return namespace(log_weights).maximum(log_weights, _SMALLEST_LOG_WEIGHT)


def _noise(owner: str, noise_std: Scalar) -> Scalar:
    noise = known(as_float(noise_std))
    if noise.shape != ():
        raise ValueError(f"`{owner}(noise_std=...)` must be one number; use `jax.vmap`. Got shape {noise.shape}.")
    require_finite(owner, "noise_std", noise, "it is a standard deviation.")
    if is_concrete(noise) and noise < 0:
        raise ValueError(f"`{owner}(noise_std=...)` must be at least 0: it is a standard deviation. Got {noise}.")
    return noise.astype(np.float64)


def _require_pair(owner: str, mixture: GaussianMixture) -> None:
    if (count := mixture.log_weights.size) != 2:
        raise ValueError(f"`{owner}(mixture=...)` needs two components, because a label is +1 or -1. Got {count}.")


def _with_shared_cov(owner: str, mixture: GaussianMixture) -> tuple[GaussianMixture, Float[AnyArray, "d d"]]:
    """The mixture, with arrays of NumPy where they are not traced, and the covariance of all its components."""
    mixture = jax.tree.map(known, mixture)
    require_float64(owner, mixture.components.mean)
    covs = mixture.components.cov
    require_float64(owner, covs)
    xp = namespace(covs)
    spread, largest = xp.max(xp.abs(covs - covs[0])), xp.max(xp.abs(covs[0]))
    cov = require_now_or_then(
        covs[0],
        spread <= _TOLERANCE * largest,
        f"`{owner}(mixture=...)` needs components with equal covariances, because only then are posterior log-odds "
        "of components linear in a token.",
        lambda: f"Got covariances whose entries differ by {spread:.3g}; the largest entry is {largest:.3g}.",
    )
    return mixture, cov


def _planar_means(owner: str, mixture: GaussianMixture) -> Float[AnyArray, "K d"]:
    means = mixture.components.mean
    if min(len(means) - 1, means.shape[1]) <= 2:
        return means
    xp = namespace(means)
    third, largest = xp.linalg.svd(means - means[0], compute_uv=False)[2], xp.max(xp.abs(means))
    return require_now_or_then(
        means,
        third <= _TOLERANCE * largest,
        f"`{owner}(mixture=...)` needs means whose differences span at most two dimensions, because it integrates "
        "over their span.",
        lambda: f"Got differences of means with a third singular value of {third:.3g}.",
    )
