"""Two laws of tokens in the plane, and what a tilt makes of a law: `e^{⟨ξ, z⟩} μ(dz)`, normalised."""

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.measures import Gaussian, GaussianMixture, tilted_mean


def laws() -> dict[str, GaussianMixture]:
    """A Gaussian, written as a mixture of one, and a mixture of three."""
    gaussian = Gaussian([[-0.5, -0.4]], [[[0.9, 0.45], [0.45, 0.7]]])
    three = Gaussian(
        [[-1.3, -0.9], [0.3, 1.7], [1.7, -0.9]],
        [[[0.30, 0.10], [0.10, 0.25]], [[0.40, -0.15], [-0.15, 0.20]], [[0.15, 0.05], [0.05, 0.35]]],
    )
    return {
        "Gaussian": GaussianMixture([0.0], gaussian),
        "mixture": GaussianMixture(np.log([0.6, 0.25, 0.15]), three),
    }


def draw_tokens(
    laws: Mapping[str, GaussianMixture], n: int, *, key: PRNGKeyArray
) -> dict[str, Float[np.ndarray, "n 2"]]:
    """`n` tokens of each law."""
    return {
        name: np.asarray(_draw(law, n, key=jr.fold_in(key, index))) for index, (name, law) in enumerate(laws.items())
    }


@eqx.filter_jit
def _draw(law: GaussianMixture, n: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
    """Compiled once."""
    return law.sample(n, key=key)


@jax.jit
def log_mgf_and_mean(law: GaussianMixture, tilt: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, " d"]]:
    """`Λ` and `∇Λ` at a tilt."""
    return law.log_mgf(tilt), tilted_mean(law, tilt)


def tilted_law(law: GaussianMixture, tilt: Float[np.ndarray, " d"], *, gated: bool = True) -> GaussianMixture:
    """The tilted law in closed form: means `m_k + Γ_k ξ`, covariances unchanged, weights moved by `Λ_k(ξ)`.

    `gated=False` leaves the weights where they were: the mistake that a claim must notice.
    """
    means, covs = np.asarray(law.components.mean), np.asarray(law.components.cov)
    moves = means @ tilt + 0.5 * tilt @ covs @ tilt
    return GaussianMixture(np.asarray(law.log_weights) + gated * moves, Gaussian(means + covs @ tilt, covs))


def log_density(law: GaussianMixture, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """Log-density of a mixture with regular covariances, in NumPy."""
    log_weights = np.asarray(law.log_weights)
    means, covs = np.asarray(law.components.mean), np.asarray(law.components.cov)
    offsets = points[:, None] - means
    squares = np.einsum("nki,kij,nkj->nk", offsets, np.linalg.inv(covs), offsets)
    logs = log_weights - np.logaddexp.reduce(log_weights) - 0.5 * (squares + np.linalg.slogdet(2 * np.pi * covs)[1])
    return np.logaddexp.reduce(logs, axis=1)


def log_tilted_density(
    law: GaussianMixture, tilt: Float[np.ndarray, " d"], points: Float[np.ndarray, "n d"]
) -> Float[np.ndarray, " n"]:
    """The definition: `log μ(z) + ⟨ξ, z⟩ - Λ(ξ)`."""
    return log_density(law, points) + points @ tilt - float(log_mgf_and_mean(law, tilt)[0])
