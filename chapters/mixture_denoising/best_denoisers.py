"""The least mean square error of denoising with one head, with two heads, and with linear attention."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize

from chapters.mixture_denoising.settings import (
    DIMENSION,
    PUBLISHED_NOISE_STD,
    TOKEN_STD,
    opposite_mixture,
    published_mixture,
)
from lib.attention import Attention, attend
from lib.measures import GaussianMixture
from lib.mixtures import (
    add_noise,
    denoising_bayes_risk,
    denoising_excess,
    denoising_heads,
    denoising_linear_risk,
    residual_denoising_head,
)

# Quadrature nodes per dimension of a search, and of the values that are shown.
SEARCH_NODES, NODES = 30, 96
# Random starts of each search, and their standard deviation.
STARTS, SPREAD = 2, 0.5

# Compiled once for all noise levels.
bayes_risk = jax.jit(denoising_bayes_risk)
affine_risk = jax.jit(partial(denoising_linear_risk, intercept=True))
linear_risk = jax.jit(denoising_linear_risk)


class NoiseLevel(NamedTuple):
    """The excess of each denoiser over the Bayes risk, and the Bayes risk, at one standard deviation of the noise."""

    noise_std: float
    bayes_risk: float
    two_heads: float
    one_head: float
    affine: float
    linear: float


def noise_levels(ratios: Sequence[float]) -> list[float]:
    """Return the standard deviations of the noise: γ r and γ / r for each ratio r, γ, and the published one."""
    stds = {TOKEN_STD * ratio**sign for ratio in [1.0, *ratios] for sign in (1, -1)}
    return sorted({*stds, PUBLISHED_NOISE_STD})


def solve_noise_levels(ratios: Sequence[float], *, key: PRNGKeyArray) -> list[NoiseLevel]:
    """Return the least excess of each class of denoisers at each noise level, for the published mixture.

    Args:
      ratios: ratios of the standard deviations of noise and tokens, each > 1.
      key: JAX random key of the starts of the searches for the best single head.

    Returns:
      One entry per noise level, in increasing order.
    """
    law, search = published_mixture(), _search()
    levels = []
    for index, noise_std in enumerate(noise_levels(ratios)):
        bayes = float(bayes_risk(law, noise_std))
        levels.append(
            NoiseLevel(
                noise_std,
                bayes,
                two_heads=float(_excess_of_the_sum(denoising_heads(law, noise_std), law, noise_std)),
                one_head=search(noise_std, jr.fold_in(key, index)),
                affine=float(affine_risk(law, noise_std)) - bayes,
                linear=float(linear_risk(law, noise_std)) - bayes,
            )
        )
    return levels


def solve_intercepts() -> dict[str, float]:
    """Return the part of the excess of linear attention that an intercept removes, at published and opposite means."""
    return {"published": _gain(published_mixture()), "opposite": _gain(opposite_mixture())}


def _gain(law: GaussianMixture, noise_std: float = PUBLISHED_NOISE_STD) -> float:
    bayes, affine, linear = (float(risk(law, noise_std)) for risk in (bayes_risk, affine_risk, linear_risk))
    return (linear - affine) / (linear - bayes)


@jax.jit
def _excess_of_the_sum(heads: tuple[Attention, ...], law: GaussianMixture, noise_std: float) -> Float[Array, ""]:
    noisy = add_noise(law, noise_std)
    return denoising_excess(lambda z: sum(attend(head, noisy, z) for head in heads), law, noise_std, nodes=NODES)


def _search():
    """Return a function that searches the best single head at a noise level, from random starts and one known head."""
    law = published_mixture()

    def excess(point, noise_std, nodes):
        bilinear, value = point.reshape(2, DIMENSION, DIMENSION)
        noisy = add_noise(law, noise_std)
        return denoising_excess(lambda z: attend(Attention(bilinear, value), noisy, z), law, noise_std, nodes=nodes)

    slope = jax.jit(jax.value_and_grad(partial(excess, nodes=SEARCH_NODES)))
    final = jax.jit(partial(excess, nodes=NODES))

    def search(noise_std: float, key: PRNGKeyArray) -> float:
        known = residual_denoising_head(law, noise_std)
        random = SPREAD * np.asarray(jr.normal(key, (STARTS, 2 * DIMENSION**2)))
        ends = []
        for start in (np.concatenate([np.ravel(known.bilinear), np.ravel(known.value)]), *random):
            end = minimize(
                lambda point: tuple(np.asarray(part, float) for part in slope(jnp.asarray(point), noise_std)),
                start,
                jac=True,
                method="BFGS",
                options={"gtol": 1e-9},
            )
            ends.append(float(final(jnp.asarray(end.x), noise_std)))
        return min(ends)

    return search
