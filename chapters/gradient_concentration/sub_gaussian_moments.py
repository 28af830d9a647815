"""Tilted moments of one token coordinate: of sub-Gaussian laws, of one that is not, and a ceiling of the former."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

# The orders of the assumption, beside 0.
ORDERS = (4, 8)
# The law that is not sub-Gaussian; its tilted moments are finite only below the tilt 1/b.
OUTSIDER = "Laplace"
# The share of the mixture's variance that lies within its components.
WITHIN = 0.1

Moment = Callable[[float, int], float]


@dataclass(frozen=True)
class Tilts:
    """Of laws with mean 0 and variance 1: the tilted moments of each order by tilt, and their common ceiling."""

    tilts: Float[np.ndarray, " n"]
    moments: Mapping[tuple[str, int], Float[np.ndarray, " n"]]
    ceilings: Mapping[int, Float[np.ndarray, " n"]]


def tilted_moments() -> Tilts:
    """By quadrature over the tokens, or over two points, or (Laplace) in closed form."""
    tilts = np.linspace(0.0, 6.0, 121)
    x = np.linspace(-14.0, 20.0, 6801)
    edge, (centre, width) = np.sqrt(3.0), np.sqrt([1 - WITHIN, WITHIN])
    log_clusters = np.logaddexp(-(((x - centre) / width) ** 2) / 2, -(((x + centre) / width) ** 2) / 2)
    inside, weights = np.polynomial.legendre.leggauss(80)
    laws: dict[str, Moment] = {
        "Gaussian": _by_rule(x, -(x**2) / 2),
        "mixture": _by_rule(x, log_clusters),
        "uniform": _by_rule(edge * inside, np.log(weights)),
        "Rademacher": _by_rule(np.asarray([-1.0, 1.0]), np.zeros(2)),
        OUTSIDER: _laplace(np.sqrt(0.5)),
    }
    return Tilts(
        tilts,
        {(name, order): np.asarray([law(t, order) for t in tilts]) for name, law in laws.items() for order in ORDERS},
        {order: np.asarray([ceiling(t, order) for t in tilts]) for order in ORDERS},
    )


def _by_rule(nodes: Float[np.ndarray, " n"], log_weights: Float[np.ndarray, " n"]) -> Moment:
    """`E |z'|^p` under the tilt, from a rule for the law itself."""

    def moment(tilt: float, order: int) -> float:
        log_mass = log_weights + tilt * nodes
        return float(np.sum(np.exp(log_mass - logsumexp(log_mass)) * np.abs(nodes) ** order))

    return moment


def _laplace(scale: float) -> Moment:
    """Tilted double exponentials are two exponentials, of different scales; infinite from the tilt 1/b on."""

    def moment(tilt: float, order: int) -> float:
        if tilt * scale >= 1:
            return np.inf
        arms = scale / (1 - scale * tilt * np.asarray([-1.0, 1.0]))
        return float(np.prod(np.arange(1.0, order + 1)) * np.sum(arms ** (order + 1)) / np.sum(arms))

    return moment


def ceiling(tilt: float, order: int) -> float:
    """`E (2|ξ| + Y)^p`, `P(Y > y) = min(1, 2e^{-y²/2})`: no law that is 1-sub-Gaussian and centred has more.

    By parts, the mean of an increasing function is its value at the start plus the integral of slope times tail.
    """
    y = np.linspace(0.0, 14.0, 4001)
    slope = order * (2 * tilt + y) ** (order - 1)
    return float((2 * tilt) ** order + np.trapezoid(slope * np.minimum(1.0, 2 * np.exp(-(y**2) / 2)), y))
