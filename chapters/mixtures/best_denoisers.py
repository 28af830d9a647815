"""The least mean square error of denoising with one head, with two heads, and with linear attention."""

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize
from scipy.special import expit

from chapters import UNOPTIMISED
from chapters.mixtures.denoisers import (
    add_noise,
    denoised,
    denoising_excess,
    denoising_heads,
    head_outputs,
    residual_denoising_head,
)
from chapters.mixtures.settings import DIMENSION, opposite_tokens, published_tokens
from chapters.mixtures.style import PUBLISHED_NOISE_STD, TOKEN_STD
from lib.attention import Attention
from lib.batching import in_batches
from lib.measures import GaussianMixture
from lib.mixtures import denoising_bayes_risk, denoising_linear_risk
from lib.random import normal

# Quadrature nodes up to this distance, along the line of the two means and across. The best head changes quickly only
# along the line: with little noise within a twentieth of a standard deviation, which the fine nodes resolve.
REACH, ROUGH, FINE = 6.0, (64, 16), (512, 24)
# Tokens at which the Bayes denoiser is computed at once: those of the rough grid.
TOGETHER = 2048
# Quadrature nodes per dimension for two heads, which are smooth.
NODES = 96
# Random starts of each search, and their standard deviation.
STARTS, SPREAD = 2, 0.5

# Compiled once for all noise levels.
bayes_outputs = jax.jit(denoised)


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
    law, search = published_tokens(), _search()
    levels, last = [], None
    # with less noise the best head is steeper, and hard to find except from the one at the level before
    for index, noise_std in reversed(list(enumerate(noise_levels(ratios)))):
        bayes, affine, linear = _risks(law, noise_std)
        one_head, last = search(noise_std, jr.fold_in(key, index), last)
        levels.append(
            NoiseLevel(
                noise_std,
                bayes,
                two_heads=float(_excess_of_the_sum(denoising_heads(law, noise_std), law, noise_std)),
                one_head=one_head,
                affine=affine - bayes,
                linear=linear - bayes,
            )
        )
    return levels[::-1]


def solve_intercepts() -> dict[str, float]:
    """Return the part of the excess of linear attention that an intercept removes, at published and opposite means."""
    return {"published": _gain(published_tokens()), "opposite": _gain(opposite_tokens())}


def _gain(law: GaussianMixture, noise_std: float = PUBLISHED_NOISE_STD) -> float:
    bayes, affine, linear = _risks(law, noise_std)
    return (linear - affine) / (linear - bayes)


def _risks(law: GaussianMixture, noise_std: float) -> tuple[float, float, float]:
    """Return the Bayes risk, and the least risks of linear attention with and without an intercept."""
    affine, linear = (denoising_linear_risk(law, noise_std, intercept=intercept) for intercept in (True, False))
    return float(denoising_bayes_risk(law, noise_std)), float(affine), float(linear)


@partial(jax.jit, compiler_options=UNOPTIMISED)
def _excess_of_the_sum(heads: tuple[Attention, ...], law: GaussianMixture, noise_std: float) -> Float[Array, ""]:
    noisy = add_noise(law, noise_std)

    def denoiser(z):
        return sum(head_outputs(head, noisy, z[None])[0] for head in heads)

    return denoising_excess(denoiser, law, noise_std, nodes=NODES)


def _search():
    """Return a function that searches the best single head at a noise level.

    It starts from random heads, from one in closed form, and from the best head of another level. The best end is the
    start of a last search on the fine grid. The function returns the excess and the head, as a vector.
    """
    law = published_tokens()

    def descend(start, noise_std, nodes):
        normals, probabilities = _grid(*nodes)
        tokens = _tokens(noise_std, normals)
        # one program for all grids
        targets = in_batches(partial(bayes_outputs, law, noise_std), tokens, batch=TOGETHER)
        grid = (tokens.T, targets.T, probabilities)
        return minimize(
            _excess_and_slope, start, args=(noise_std, *grid), jac=True, method="BFGS", options={"gtol": 1e-9}
        )

    def search(noise_std: float, key: PRNGKeyArray, last: np.ndarray | None) -> tuple[float, np.ndarray]:
        known = residual_denoising_head(law, noise_std)
        random = SPREAD * np.asarray(normal(key, (STARTS, 2 * DIMENSION**2)))
        starts = [np.concatenate([np.ravel(known.bilinear), np.ravel(known.value)]), *random]
        ends = [descend(start, noise_std, ROUGH) for start in (starts if last is None else [*starts, last])]
        best = descend(min(ends, key=lambda end: end.fun).x, noise_std, FINE)
        return float(best.fun), best.x

    return search


def _excess_and_slope(
    point: Float[np.ndarray, " entries"],
    noise_std: float,
    tokens: Float[np.ndarray, "d n"],
    targets: Float[np.ndarray, "d n"],
    probabilities: Float[np.ndarray, " n"],
) -> tuple[float, Float[np.ndarray, " entries"]]:
    """Return the excess of the head with these entries of U and V, and its gradient.

    The outputs are `head_outputs` for `published_tokens`: two components of equal weights, with covariance γ² I.
    """
    bilinear, value = point.reshape(2, DIMENSION, DIMENSION)
    first, second = _means()
    variance, difference = TOKEN_STD**2 + noise_std**2, first - second
    tilts = bilinear @ tokens
    weight = expit(difference @ tilts)
    tilted_means = variance * tilts + second[:, None] + np.outer(difference, weight)
    misses = value @ tilted_means - targets
    pull = 2 * probabilities * misses
    by_mean = value.T @ pull
    by_tilt = variance * by_mean + np.outer(difference, weight * (1 - weight) * (difference @ by_mean))
    return 0.5 * np.sum(pull * misses), np.concatenate([np.ravel(by_tilt @ tokens.T), np.ravel(pull @ tilted_means.T)])


@cache
def _means() -> Float[np.ndarray, "2 d"]:
    return np.asarray(published_tokens().components.mean)


def _grid(along: int, across: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a trapezoid for two standard normals, along the line of the means and across, for both components."""
    lines = [np.linspace(-REACH, REACH, nodes) for nodes in (along, across)]
    weights = [np.exp(-0.5 * line**2) * (line[1] - line[0]) / np.sqrt(2 * np.pi) for line in lines]
    first, second = _means()
    axis = (first - second) / np.linalg.norm(first - second)
    normals = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2) @ [axis, [-axis[1], axis[0]]]
    return normals, np.tile(0.5 * np.outer(*weights).ravel(), 2)


def _tokens(noise_std: float, normals: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n_of_both d"]:
    """Return noisy tokens of the first component, then of the second."""
    deviations = np.hypot(TOKEN_STD, noise_std) * normals
    return np.concatenate([mean + deviations for mean in _means()])
