"""Laws and prompts before and after a tilt: densities on a grid, softmax weights, means."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.measures.token_distributions import log_density, log_mgf_and_mean, log_tilted_density, tilted_law
from lib.measures import GaussianMixture

# The window in which densities are computed.
LEFT, RIGHT, BOTTOM, TOP = -3.4, 3.8, -3.0, 3.6


@dataclass(frozen=True)
class Tilted:
    """One law before and after a tilt: its `Λ` there, both means, and log-densities at points of the plane.

    Of the tilted law three: by definition, in closed form, and in closed form with the weights of the mixture unmoved.
    """

    tilt: Float[np.ndarray, " d"]
    log_mgf: float
    mean: Float[np.ndarray, " d"]
    tilted_mean: Float[np.ndarray, " d"]
    points: Float[np.ndarray, "n d"]
    log_density: Float[np.ndarray, " n"]
    log_tilted: Float[np.ndarray, " n"]
    log_closed_form: Float[np.ndarray, " n"]
    log_ungated: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Weighted:
    """The tokens of one prompt, their softmax weights, of mean 1, and the weighted mean: what the prompt answers."""

    tokens: Float[np.ndarray, "n d"]
    weights: Float[np.ndarray, " n"]
    output: Float[np.ndarray, " d"]


@dataclass(frozen=True)
class Average:
    """The weighted mean of so many tokens, and the standard error that their weights give it."""

    tokens: int
    mean: Float[np.ndarray, " d"]
    std_error: Float[np.ndarray, " d"]

    def deviations(self, expected: Float[np.ndarray, " d"]) -> Float[np.ndarray, " d"]:
        """Distance from what is expected, coordinate by coordinate, in standard errors."""
        return np.abs(self.mean - expected) / self.std_error


def tilt_laws(laws: Mapping[str, GaussianMixture], tilt: Float[np.ndarray, " d"], grid: int) -> dict[str, Tilted]:
    """Each law before and after the tilt, on a square grid of that many points a side."""
    return {name: _tilt(law, tilt, window(grid)) for name, law in laws.items()}


def _tilt(law: GaussianMixture, tilt: Float[np.ndarray, " d"], points: Float[np.ndarray, "n d"]) -> Tilted:
    log_mgf, moved = log_mgf_and_mean(law, tilt)
    return Tilted(
        tilt=tilt,
        log_mgf=float(log_mgf),
        mean=np.asarray(log_mgf_and_mean(law, np.zeros(2))[1]),
        tilted_mean=np.asarray(moved),
        points=points,
        log_density=log_density(law, points),
        log_tilted=log_tilted_density(law, tilt, points),
        log_closed_form=log_density(tilted_law(law, tilt), points),
        log_ungated=log_density(tilted_law(law, tilt, gated=False), points),
    )


def window(grid: int) -> Float[np.ndarray, "n 2"]:
    """Points of a square grid, row after row."""
    across, up = np.meshgrid(np.linspace(LEFT, RIGHT, grid), np.linspace(BOTTOM, TOP, grid))
    return np.stack([across.ravel(), up.ravel()], axis=1)


def weigh_tokens(
    drawn: Mapping[str, Float[np.ndarray, "n d"]], tilt: Float[np.ndarray, " d"], shown: int
) -> dict[str, Weighted]:
    """The first tokens drawn of each law, as many as are `shown`, as a prompt that is asked for the tilt."""
    return {name: _weigh(points[:shown], tilt) for name, points in drawn.items()}


def _weigh(tokens: Float[np.ndarray, "n d"], tilt: Float[np.ndarray, " d"]) -> Weighted:
    weights = np.exp(tokens @ tilt)
    weights /= weights.mean()
    return Weighted(tokens, weights, weights @ tokens / len(tokens))


def average_tokens(drawn: Mapping[str, Float[np.ndarray, "n d"]], tilted: Mapping[str, Tilted]) -> dict[str, Average]:
    """The weighted mean of all tokens drawn, of each law."""
    return {name: _average(points, tilted[name]) for name, points in drawn.items()}


def _average(points: Float[np.ndarray, "n d"], law: Tilted) -> Average:
    weights = np.exp(points @ law.tilt - law.log_mgf)
    weights /= weights.sum()
    mean = weights @ points
    errors = np.sqrt(weights**2 @ (points - mean) ** 2)
    return Average(len(points), mean, errors)
