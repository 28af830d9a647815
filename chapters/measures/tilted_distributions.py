"""Distributions and prompts before and after a tilt: densities on a grid, softmax weights, means."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.measures.token_distributions import log_density, log_mgf_and_mean, log_tilted_density, tilted_distribution
from lib.measures import GaussianMixture

# The rectangle in which densities are computed.
LEFT, RIGHT, BOTTOM, TOP = -3.4, 3.8, -3.0, 3.6


@dataclass(frozen=True)
class Tilted:
    """One distribution before and after a tilt: Λ at the tilt, both means, and log-densities at points of the plane.

    The density of the tilted distribution is given three times: by definition, in closed form, and in closed form with
    unchanged weights of the mixture.
    """

    tilt: Float[np.ndarray, " d"]
    log_mgf: float
    mean: Float[np.ndarray, " d"]
    tilted_mean: Float[np.ndarray, " d"]
    points: Float[np.ndarray, "n d"]
    log_density: Float[np.ndarray, " n"]
    log_tilted: Float[np.ndarray, " n"]
    log_closed_form: Float[np.ndarray, " n"]
    log_unmoved_weights: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Weighted:
    """The tokens of one prompt, their softmax weights (scaled to mean 1), and their weighted mean."""

    tokens: Float[np.ndarray, "n d"]
    weights: Float[np.ndarray, " n"]
    output: Float[np.ndarray, " d"]


@dataclass(frozen=True)
class Average:
    """The weighted mean of many tokens, and its standard error."""

    tokens: int
    mean: Float[np.ndarray, " d"]
    std_error: Float[np.ndarray, " d"]

    def deviations(self, expected: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Return the deviation of each coordinate from its expected value, in standard errors."""
        return np.abs(self.mean - expected) / self.std_error


def solve_tilted_distributions(
    distributions: Mapping[str, GaussianMixture], tilt: Float[np.ndarray, " d"], grid: int
) -> dict[str, Tilted]:
    """Return each distribution before and after the tilt, on a square grid with `grid` points per side."""
    return {name: _tilt(distribution, tilt, window(grid)) for name, distribution in distributions.items()}


def _tilt(distribution: GaussianMixture, tilt: Float[np.ndarray, " d"], points: Float[np.ndarray, "n d"]) -> Tilted:
    log_mgf, mean = log_mgf_and_mean(distribution, tilt)
    return Tilted(
        tilt=tilt,
        log_mgf=float(log_mgf),
        mean=np.asarray(log_mgf_and_mean(distribution, np.zeros(2))[1]),
        tilted_mean=np.asarray(mean),
        points=points,
        log_density=log_density(distribution, points),
        log_tilted=log_tilted_density(distribution, tilt, points),
        log_closed_form=log_density(tilted_distribution(distribution, tilt), points),
        log_unmoved_weights=log_density(tilted_distribution(distribution, tilt, move_weights=False), points),
    )


def window(grid: int) -> Float[np.ndarray, "n 2"]:
    """Return the points of a square grid, row by row."""
    across, up = np.meshgrid(np.linspace(LEFT, RIGHT, grid), np.linspace(BOTTOM, TOP, grid))
    return np.stack([across.ravel(), up.ravel()], axis=1)


def solve_token_weights(
    drawn: Mapping[str, Float[np.ndarray, "n d"]], tilt: Float[np.ndarray, " d"], shown: int
) -> dict[str, Weighted]:
    """Return the first `shown` tokens from each distribution, with their softmax weights under the tilt."""
    return {name: _weigh(points[:shown], tilt) for name, points in drawn.items()}


def _weigh(tokens: Float[np.ndarray, "n d"], tilt: Float[np.ndarray, " d"]) -> Weighted:
    weights = np.exp(tokens @ tilt)
    weights /= weights.mean()
    return Weighted(tokens, weights, weights @ tokens / len(tokens))


def solve_weighted_means(
    drawn: Mapping[str, Float[np.ndarray, "n d"]], tilted: Mapping[str, Tilted]
) -> dict[str, Average]:
    """Return the weighted mean of all tokens from each distribution."""
    return {name: _average(points, tilted[name]) for name, points in drawn.items()}


def _average(points: Float[np.ndarray, "n d"], theory: Tilted) -> Average:
    weights = np.exp(points @ theory.tilt - theory.log_mgf)
    weights /= weights.sum()
    mean = weights @ points
    errors = np.sqrt(weights**2 @ (points - mean) ** 2)
    return Average(len(points), mean, errors)
