"""The Bayes denoiser of a Gaussian mixture, heads that compute it, and the error of other denoisers above its risk.

Tokens come from `Σ_k π_k N(m_k, Γ)`; noisy tokens `Z = X + ξ ε` have components of the covariance `S = Γ + ξ² I`. The
Bayes denoiser is affine in each component and gated by the posterior of the component [GBB26].
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax
from jaxtyping import Array, Float

from chapters.mixtures.integrals import component_weights, namespace_of, normal_grid
from lib.attention import Attention, attend
from lib.measures import Gaussian, GaussianMixture, Measure

Scalar = float | int | Float[Array, ""]


def add_noise(mixture: GaussianMixture, noise_std: Scalar) -> GaussianMixture:
    r"""Return the distribution of the tokens of a noisy prompt, `Z = X + noise_std · ε`, X ~ mixture.

    Args:
      mixture: log-weights (K,), means (K, d), covariances (K, d, d), which may differ.
      noise_std: standard deviation ξ of the noise in each coordinate, shape ().

    Returns:
      The mixture with `noise_std² I` added to each covariance.

    Source: [GBB26, section 4]. Transformations: jit, vmap, grad.
    """
    components = mixture.components
    noise = jnp.asarray(noise_std) ** 2 * jnp.eye(components.mean.shape[-1])
    return GaussianMixture(mixture.log_weights, Gaussian(components.mean, components.cov + noise))


def bayes_denoiser(mixture: GaussianMixture, noise_std: Scalar, query: Float[Array, " d"]) -> Float[Array, " d"]:
    r"""Return `E[X | Z = query] = z - ξ² S⁻¹ (z - Σ_k β_k m_k)`, β the posterior of the component.

    Args:
      mixture: the distribution of X: log-weights (K,), means (K, d), equal covariances (K, d, d), singular or not.
      noise_std: standard deviation ξ > 0 of the noise in each coordinate, shape ().
      query: the noisy token z, shape (d,).

    Returns:
      The posterior mean, shape (d,).

    Source: [GBB26, eq. 10]. Transformations: jit, vmap, grad.
    """
    cov, variance = mixture.components.cov[0], jnp.asarray(noise_std) ** 2
    return _posterior_mean(mixture, cov, variance, query)


def head_outputs(head: Attention, noisy: GaussianMixture, queries: Float[Array, "n d"]) -> Float[Array, "n d"]:
    r"""Return the outputs of a head on the infinite prompt for many queries: `attend`, as a few products of matrices.

    `V (S U z + Σ_k α_k(z) m_k)` [GBB26, Prop. 2.1], for components of one covariance S. Trainings take thousands of
    steps, and products of small matrices, one for each query, are slow.
    """
    means, tilts = noisy.components.mean, queries @ head.bilinear.T
    weights = jax.nn.softmax(tilts @ means.T + noisy.log_weights, axis=1)
    return (tilts @ noisy.components.cov[0] + weights @ means) @ head.value.T


def denoised(mixture: GaussianMixture, noise_std: float, queries: Float[Array, "n d"]) -> Float[Array, "n d"]:
    """Return the posterior means for many queries, `bayes_denoiser` as a few products of matrices."""
    xp, (mixture, noise_std) = namespace_of(mixture, noise_std)
    means = mixture.components.mean
    inverse = xp.linalg.inv(mixture.components.cov[0] + noise_std**2 * np.eye(means.shape[1]))
    offsets = mixture.log_weights - 0.5 * xp.sum((means @ inverse) * means, axis=1)
    posterior = jax.nn.softmax(queries @ inverse @ means.T + offsets, axis=1)
    return queries - noise_std**2 * (queries - posterior @ means) @ inverse


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

    Source: [GBB26, Prop. 4.3]. Transformations: jit, vmap, grad.
    """
    cov, variance = mixture.components.cov[0], jnp.asarray(noise_std) ** 2
    start = jnp.asarray(start)

    def step(point, _):
        following = _posterior_mean(mixture, cov, variance, point)
        return following, following

    return jnp.concatenate([start[None], jax.lax.scan(step, start, length=steps)[1]])


def denoiser_fixed_point(separation: Scalar) -> Float[Array, ""]:
    r"""Return the largest root u of `u = tanh(λ² u)`, where the iterated Bayes denoiser of two components ends.

    It is 0 up to λ = 1; beyond, the iterates keep the two components apart.

    Args:
      separation: `λ = ‖m_1 - m_2‖/(2√(γ² + ξ²)) ≥ 0`, half the distance of the means in standard deviations of noisy
        tokens, shape ().

    Returns:
      u in [0, 1], shape (), with a relative error below 1e-12, also where λ - 1 is 1e-12.

    Source: [GBB26, Prop. 4.3] for γ = 0; for γ > 0 derived here. Transformations: jit, vmap.
    """
    separation = jnp.asarray(separation)
    excess = (separation - 1) * (separation + 1)

    def beyond(u):
        small = jnp.abs(u) < 0.1
        near, far = jnp.where(small, u, 0.0), jnp.where(small, 0.5, u)
        # artanh(u)/u - 1
        series = jnp.polyval(1.0 / np.append(np.arange(21, 1, -2), np.inf), near**2)
        return jnp.where(small, series, jnp.arctanh(far) / far - 1) > excess

    root = jnp.exp(_bisect(lambda log_u: beyond(jnp.exp(log_u)), -60.0 * jnp.ones_like(excess), jnp.zeros_like(excess)))
    return jnp.where(excess > 0, root, 0.0)


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
      ValueError: if the mixture is not of this kind, or values are traced.

    Source: [GBB26, Thm 4.1 (i), Prop. C.5]. Transformations: none, because the construction depends on the values.
    """
    owner = "denoising_heads"
    xp, (mixture, noise_std) = namespace_of(mixture, noise_std)
    cov, noise = mixture.components.cov[0], noise_std**2
    means = mixture.components.mean
    d = means.shape[1]
    if xp is not np:
        raise ValueError(
            f"`{owner}(mixture, noise_std)` needs concrete values, because opposite means need another construction: "
            "call it outside `jit`, `vmap` and `grad`. Got traced arrays."
        )
    if len(means) != 2 or d < 2:
        raise ValueError(f"`{owner}(mixture=...)` needs two components and d ≥ 2. Got means of shape {means.shape}.")
    tokens = np.trace(cov) / d
    if np.max(np.abs(cov - tokens * np.eye(d))) > 1e-12 * tokens:
        raise ValueError(f"`{owner}(mixture=...)` needs a covariance γ² I: others take other heads. Got {cov}.")
    total, difference = tokens + noise, means[0] - means[1]
    squares = np.sum(means**2, axis=1)
    if np.abs(squares[0] - squares[1]) > 1e-9 * np.max(squares) or np.sum(difference**2) <= 1e-18 * np.max(squares):
        raise ValueError(
            f"`{owner}(mixture=...)` needs different means of one norm, because attention has no offset for the norm. "
            f"Got norms {np.sqrt(squares)} and a distance of {np.linalg.norm(difference)}."
        )
    if np.sum((means[0] + means[1]) ** 2) <= 1e-18 * np.max(squares):
        axis = _unit(means[0])
        smallest = np.eye(d)[np.argmin(np.abs(axis))]
        normal = _unit(smallest - (smallest @ axis) * axis)
        along, across = np.outer(axis, axis), np.outer(axis, normal)
        even = noise / (2 * total) * along + tokens / (2 * total) * (np.eye(d) - along)
        odd = (tokens - noise) / (2 * total) * across
        first, second = (Attention((np.eye(d) + sign * across.T) / total, even + sign * odd) for sign in (1.0, -1.0))
        return first, second
    duals = np.linalg.pinv(means.T)
    rest = 0.5 * (np.eye(d) - means.T @ duals)

    def head(own, other):
        pull = np.outer(means[other], difference) / (means[other] @ difference)
        bilinear = (tokens * np.eye(d) + (noise - tokens) * pull) / (noise * total)
        return Attention(bilinear, noise / total * (np.outer(means[own], duals[own]) + rest))

    return head(0, 1), head(1, 0)


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
      ValueError: if concrete `m_kᵀ S⁻¹ m_k` differ by more than 1e-9 of the largest.

    Source: [GBB26, Thm 4.1 (ii), Prop. 4.4] for two components and Γ = γ² I; beyond, derived here. Transformations:
    jit, vmap, grad.
    """
    owner = "residual_denoising_head"
    xp, (mixture, noise_std) = namespace_of(mixture, noise_std)
    cov, noise = mixture.components.cov[0], noise_std**2
    means = mixture.components.mean
    inverse = xp.linalg.inv(cov + noise * np.eye(len(cov)))
    norms = xp.einsum("ki,ij,kj->k", means, inverse, means)
    if xp is np and np.max(norms) - np.min(norms) > 1e-9 * np.max(norms):
        raise ValueError(
            f"`{owner}(mixture=...)` needs components with equal `m_kᵀ S⁻¹ m_k`, because attention has no offset for "
            f"them. Got {norms}."
        )
    return Attention(inverse, noise * inverse)


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

    Source: derived here. Transformations: jit, vmap, grad.
    """
    owner = "denoising_excess"
    cov, variance = mixture.components.cov[0], jnp.asarray(noise_std) ** 2
    means = mixture.components.mean
    if (d := means.shape[1]) > 2:
        raise ValueError(f"`{owner}(mixture=...)` integrates over tokens, so d must be 1 or 2. Got d = {d}.")
    normals, weights = normal_grid(d, nodes)
    root = jnp.linalg.cholesky(cov + variance * jnp.eye(d))

    def component(mean):
        tokens = mean + normals @ root.T
        misses = jax.vmap(lambda z: denoiser(z) - _posterior_mean(mixture, cov, variance, z))(tokens)
        return weights @ jnp.sum(misses**2, axis=1)

    return component_weights(mixture) @ jax.lax.map(component, means)


def _posterior_mean(mixture, cov, variance, query):
    means = mixture.components.mean
    total = cov + variance * jnp.eye(len(cov))
    centred = query - means
    log_posterior = log_softmax(mixture.log_weights) - 0.5 * jnp.sum(centred.T * jnp.linalg.solve(total, centred.T), 0)
    return query - variance * jnp.linalg.solve(total, jax.nn.softmax(log_posterior) @ centred)


def _unit(vector: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
    """Return the direction of a vector that is not zero."""
    scaled = vector / np.max(np.abs(vector))
    return scaled / np.linalg.norm(scaled)


def _bisect(beyond, low, high):
    """Return the point between `low` and `high` at which `beyond` becomes true."""

    def halve(_, ends):
        middle = 0.5 * (ends[0] + ends[1])
        found = beyond(middle)
        return jnp.where(found, ends[0], middle), jnp.where(found, middle, ends[1])

    return jax.lax.fori_loop(0, 60, halve, (low, high))[1]
