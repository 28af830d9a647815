"""Tilted moments of one token coordinate: sub-Gaussian distributions and their ceiling, and Laplace tokens."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

# The orders of the assumption, without 0.
ORDERS = (4, 8)
# The distribution that is not sub-Gaussian; its tilted moments are finite only below the tilt 1/b.
NOT_SUB_GAUSSIAN = "Laplace"
# Fraction of the variance of the mixture that is within its components.
WITHIN = 0.1

Moment = Callable[[float, int], float]


@dataclass(frozen=True)
class TiltedMoments:
    """Tilted moments of distributions with mean 0 and variance 1, by order and tilt, and their common ceiling."""

    tilts: Float[np.ndarray, " n"]
    moments: Mapping[tuple[str, int], Float[np.ndarray, " n"]]
    ceilings: Mapping[int, Float[np.ndarray, " n"]]


def solve_tilted_moments() -> TiltedMoments:
    """Return the moments, by quadrature over the tokens or (Laplace) in closed form, and the ceilings."""
    tilts = np.linspace(0.0, 6.0, 121)
    x = np.linspace(-14.0, 20.0, 6801)
    edge, (centre, width) = np.sqrt(3.0), np.sqrt([1 - WITHIN, WITHIN])
    log_clusters = np.logaddexp(-(((x - centre) / width) ** 2) / 2, -(((x + centre) / width) ** 2) / 2)
    inside, weights = np.polynomial.legendre.leggauss(80)
    distributions: dict[str, Moment] = {
        "Gaussian": _by_rule(x, -(x**2) / 2),
        "mixture": _by_rule(x, log_clusters),
        "uniform": _by_rule(edge * inside, np.log(weights)),
        "Rademacher": _by_rule(np.asarray([-1.0, 1.0]), np.zeros(2)),
        NOT_SUB_GAUSSIAN: _laplace(np.sqrt(0.5)),
    }
    return TiltedMoments(
        tilts,
        {
            (name, order): np.asarray([moment(t, order) for t in tilts])
            for name, moment in distributions.items()
            for order in ORDERS
        },
        {order: np.asarray([ceiling(t, order) for t in tilts]) for order in ORDERS},
    )


def _by_rule(nodes: Float[np.ndarray, " n"], log_weights: Float[np.ndarray, " n"]) -> Moment:
    """Return the function `E |z'|^p` under a tilt, from a quadrature rule without the tilt."""

    def moment(tilt: float, order: int) -> float:
        log_mass = log_weights + tilt * nodes
        return float(np.sum(np.exp(log_mass - logsumexp(log_mass)) * np.abs(nodes) ** order))

    return moment


def _laplace(scale: float) -> Moment:
    """Return the function for Laplace tokens: under a tilt, two exponentials of different scales."""

    def moment(tilt: float, order: int) -> float:
        if tilt * scale >= 1:
            return np.inf
        arms = scale / (1 - scale * tilt * np.asarray([-1.0, 1.0]))
        return float(np.prod(np.arange(1.0, order + 1)) * np.sum(arms ** (order + 1)) / np.sum(arms))

    return moment


def ceiling(tilt: float, order: int) -> float:
    """Return `E (2|ξ| + Y)^p`, `P(Y > y) = min(1, 2e^{-y²/2})`, a bound for centred 1-sub-Gaussian distributions.

    By parts, the mean of an increasing function is its value at 0 plus the integral of slope times tail.
    """
    y = np.linspace(0.0, 14.0, 4001)
    slope = order * (2 * tilt + y) ** (order - 1)
    return float((2 * tilt) ** order + np.trapezoid(slope * np.minimum(1.0, 2 * np.exp(-(y**2) / 2)), y))
