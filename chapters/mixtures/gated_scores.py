"""The output of a head on labelled tokens of a mixture of two components: a linear score with one sigmoid gate."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float

from chapters.mixtures.integrals import component_weights, namespace_of, normal_grid
from lib.attention import Attention
from lib.measures import Gaussian, GaussianMixture


class GatedScore(eqx.Module):
    """The score `f(x) = ⟨w, x⟩ + b + r σ(s_0 + ⟨s, x⟩)`: the output of a head on labelled tokens of a mixture.

    Args:
      slope: w, shape (d,).
      intercept: b, shape ().
      height: r, shape ().
      gate_slope: s, shape (d,).
      gate_offset: $s_0$, shape ().
    """

    slope: Float[Array, " d"] = eqx.field(converter=jnp.asarray)
    intercept: Float[Array, ""] = eqx.field(converter=jnp.asarray)
    height: Float[Array, ""] = eqx.field(converter=jnp.asarray)
    gate_slope: Float[Array, " d"] = eqx.field(converter=jnp.asarray)
    gate_offset: Float[Array, ""] = eqx.field(converter=jnp.asarray)

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


def label_tokens(mixture: GaussianMixture) -> GaussianMixture:
    r"""Return the distribution of `(X, Y)` in $R^{d+1}$, Y = +1 for component 0 and -1 for component 1.

    Args:
      mixture: two components: log-weights (2,), means (2, d), covariances (2, d, d), which may differ.

    Returns:
      A mixture whose components have no variance in the last coordinate. A head discriminates when the last coordinate
      of its output at the query (x, 0) estimates the log-odds of Y.

    Source: [GBB26, section 3]. Transformations: jit, vmap, grad.
    """
    means, covs = mixture.components.mean, mixture.components.cov
    labels = jnp.asarray([[1.0], [-1.0]], means.dtype)
    return GaussianMixture(
        mixture.log_weights,
        Gaussian(jnp.concatenate([means, labels], axis=1), jnp.pad(covs, ((0, 0), (0, 1), (0, 1)))),
    )


def bayes_score(mixture: GaussianMixture) -> GatedScore:
    r"""Return the log-odds of the label given x, `⟨w*, x⟩ + b*`, as a score without a gate.

    Args:
      mixture: two components of one invertible covariance: log-weights (2,), means (2, d), covariances (2, d, d).

    Returns:
      The score, with `w* = Γ⁻¹(m_0 - m_1)` and the gate's offset `log π_0/π_1`.

    Source: [GBB26, section 3]. Transformations: jit, vmap, grad.
    """
    xp, (mixture,) = namespace_of(mixture)
    cov, means = mixture.components.cov[0], mixture.components.mean
    slope = xp.linalg.solve(cov, means[0] - means[1])
    odds = mixture.log_weights[0] - mixture.log_weights[1]
    intercept = odds - 0.5 * (means[0] + means[1]) @ slope
    return GatedScore(slope, intercept, 0.0, 0 * slope, odds)


def gated_score(params: Attention, mixture: GaussianMixture) -> GatedScore:
    r"""Return the last coordinate of `attend(params, label_tokens(mixture), (x, 0))` as a function of x.

    Args:
      params: a head on $R^{d+1}$: U of shape (d+1, d+1) and V of shape (e, d+1), whose last row counts.
      mixture: two components of one covariance, which may be singular.

    Returns:
      The score: `w = U_11 Γ v_21`, `b = ⟨v_21, m_1⟩ - v_22`, `r = ⟨v_21, m_0 - m_1⟩ + 2 v_22`,
      `s = 2 u_12 + U_11 (m_0 - m_1)`, `s_0 = log π_0/π_1`, with the blocks of Uᵀ and the components' numbers from 0.

    Raises:
      ValueError: unless U has d + 1 rows and columns.

    Source: [GBB26, eqs 6 and 7, Lemma B.1]. Transformations: jit, vmap, grad.
    """
    cov, means = mixture.components.cov[0], mixture.components.mean
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

    Source: derived here; the risk is that of [GBB26, section 3]. Transformations: jit, vmap, grad (first derivatives).
    """
    cov, means = mixture.components.cov[0], mixture.components.mean
    bayes = bayes_score(mixture)
    root = jnp.linalg.cholesky(cov)
    if means.shape[1] > 2:
        directions = stop_gradient(jnp.stack([bayes.slope, score.slope, score.gate_slope]) @ root)
        _, _, axes = jnp.linalg.svd(directions, full_matrices=False)
        root = root @ axes[:2].T
    normals, weights = normal_grid(root.shape[1], nodes)

    def component(mean):
        tokens = mean + normals @ root.T
        odds = jax.vmap(bayes)(tokens)
        return weights @ _bernoulli_divergence(odds, jax.vmap(score)(tokens) - odds)

    return component_weights(mixture) @ jax.vmap(component)(means)


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
