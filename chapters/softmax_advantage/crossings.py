"""The signal strengths at which softplus without a bias has the risk of the best element-wise weights.

At a large slope c the kernel log(1 + e^{cχ}) is nearly c max(χ, 0), and softplus is nearly a normalised ReLU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from math import comb

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import ndtr

from chapters.softmax_advantage.models import risk_at_slope
from lib.single_location import (
    Prompts,
    Spiked,
    best_elementwise_risk,
    best_risk,
    softplus,
)

# Lengths at which two methods find the crossing, a longer one, and signal strengths that bracket the crossing.
LENGTHS, LONG_LENGTH, BRACKET = (2, 3), 10, (1.0, 40.0)
# The error of a crossing, and the reason for it.
ACCURACY = 1e-3
BECAUSE_ACCURATE = (
    "searches find risks to about 10⁻⁶, and next to a crossing the difference of the two risks changes by more than "
    "0.003 per unit of $ν$"
)
# Steps of the lattices of scores on which slopes are searched and risks are evaluated, by length. They resolve slopes
# up to 15: the kernel has its nearest singularity at a distance of π/15 = 0.2 from the real axis.
SEARCH_STEPS, RISK_STEPS = {2: 0.1, 3: 0.15}, {2: 0.05, 3: 0.09}
# Half the distance of the two strengths between which the crossing on a lattice is interpolated.
LATTICE_DISTANCE = 0.05
# Nodes of the integral over positive scores on each axis, and the truncation of a normal, in standard deviations.
NODES, NORMAL_END = 100, 9.0


@dataclass(frozen=True)
class Crossings:
    """Signal strengths at which some weights have the risk of the best element-wise ones, one per length of `LENGTHS`.

    `softplus` and `lattice` are softplus at its best slope, by the Laplace identity and by sums over a lattice of
    scores. `relu` is the normalised ReLU. `posterior_slope` is softplus at the slope √ν of the posterior. `longer` is
    softplus at its best slope with `LONG_LENGTH` tokens.
    """

    softplus: Float[np.ndarray, " lengths"]
    lattice: Float[np.ndarray, " lengths"]
    relu: Float[np.ndarray, " lengths"]
    posterior_slope: Float[np.ndarray, " lengths"]
    longer: float


def solve_crossings() -> Crossings:
    """Return all crossings, by root finding on exact risks."""
    relu, posterior_slope = (
        np.asarray([_crossing(risk, length) for length in LENGTHS]) for risk in (relu_risk, _risk_at_posterior_slope)
    )
    crossings = np.asarray(
        [_crossing(softplus_risk, length, (near - 1.0, near + 1.0)) for length, near in zip(LENGTHS, relu, strict=True)]
    )
    lattice = np.asarray([_crossing_on_lattice(length, near) for length, near in zip(LENGTHS, crossings, strict=True)])
    return Crossings(crossings, lattice, relu, posterior_slope, _crossing(softplus_risk, LONG_LENGTH))


def _crossing(risk: Callable[[int, float], float], length: int, bracket: tuple[float, float] = BRACKET) -> float:
    def difference(snr: float) -> float:
        return risk(length, snr) - elementwise_risk(length, snr)

    return float(brentq(difference, *bracket, xtol=ACCURACY / 100))  # pyright: ignore[reportArgumentType]


def _crossing_on_lattice(length: int, near: float) -> float:
    """Return the crossing of risks on a lattice, interpolated between two strengths around `near`.

    The element-wise risks are those of the library.
    """
    snrs = near + LATTICE_DISTANCE * np.asarray([-1.0, 1.0])
    differences = []
    for snr in snrs:
        search_prompts, risk_prompts = (
            Prompts.of(partial(spiked_log_ratio, snr=snr), length, step=step[length], shift=float(np.sqrt(snrs[-1])))
            for step in (SEARCH_STEPS, RISK_STEPS)
        )
        _, risk = Prompts.best_key_risk(softplus, [search_prompts], [risk_prompts])
        differences.append(risk - elementwise_risk(length, snr))
    before, after = differences
    return float(snrs[0] - before * (snrs[1] - snrs[0]) / (after - before))


def softplus_risk(length: int, snr: float) -> float:
    """Return the lowest risk of softplus without a bias in the spiked model."""
    return float(best_risk(Spiked(float(length), float(snr)), softplus))


def elementwise_risk(length: int, snr: float) -> float:
    """Return the lowest risk of all element-wise weights in the spiked model."""
    return float(best_elementwise_risk(Spiked(float(length), float(snr))))


def _risk_at_posterior_slope(length: int, snr: float) -> float:
    return risk_at_slope(Spiked(float(length), float(snr)), softplus, np.sqrt(snr))


def relu_risk(length: int, snr: float) -> float:
    """Return the risk of the weights max(χ, 0)/Σ max(χ, 0); all weight is on the largest score if none is positive.

    The risk is an integral over the scores of 2 or 3 tokens in the spiked model, by the set of tokens with positive
    scores. It does not use the Laplace identity of `lib`. The vector v is along v* and has the best length.
    """
    root, rest = np.sqrt(snr), length - 1
    below = 0.5**rest  # the probability that no other token has a positive score
    scores, weights = _gauss(-NORMAL_END, 0.0)
    alone = weights @ (np.exp(-0.5 * (scores - root) ** 2) / np.sqrt(2 * np.pi) * ndtr(scores) ** rest)
    hidden = ndtr(root) * below + alone
    power = ndtr(root) * below + ndtr(-root) * below * rest + ndtr(-root) * below
    for count in range(2, length + 1):
        with_hidden, share = comb(rest, count - 1) * 0.5 ** (length - count), _orthant(count, root)
        hidden, power = hidden + with_hidden * share[0], power + with_hidden * share[1]
        if count < length:
            without = comb(rest, count) * ndtr(-root) * 0.5 ** (rest - count)
            power += without * _orthant(count, 0.0)[1]
    return float(1.0 - hidden**2 / power)


def _orthant(count: int, shift: float) -> tuple[float, float]:
    """Return E[s_1] and E[Σ s²] on the event that all scores are positive, s = χ/Σχ, the first of mean `shift`."""
    a, weights = _gauss(0.0, 1.0)
    if count == 2:
        shares = np.stack([a, 1 - a])
    else:
        first, second = np.meshgrid(a, a, indexing="ij")
        shares = np.stack([first, (1 - first) * second, (1 - first) * (1 - second)]).reshape(3, -1)
        weights = np.outer(weights * (1 - a), weights).ravel()
    size = np.linalg.norm(shares, axis=0)
    # scores are t times the shares: a normal density in t, of mean `peak` and standard deviation 1/size
    peak = shift * shares[0] / size**2
    low, high = np.maximum(peak - NORMAL_END / size, 0.0), peak + NORMAL_END / size
    nodes, node_weights = _gauss(0.0, 1.0)
    t = low + (high - low) * nodes[:, None]
    exponent = -0.5 * (t**2 * size**2 - 2 * t * shift * shares[0] + shift**2)
    radial = (high - low) * (node_weights @ (t ** (count - 1) * np.exp(exponent))) / (2 * np.pi) ** (count / 2)
    return float(weights @ (radial * shares[0])), float(weights @ (radial * size**2))


@lru_cache
def _gauss(low: float, high: float) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (low + high) + 0.5 * (high - low) * nodes, 0.5 * (high - low) * weights


def spiked_log_ratio(scores: Float[np.ndarray, "n L"], snr: float) -> Float[np.ndarray, "n L"]:
    """Return `log g = √ν χ_l - ν/2` of the spiked task, for every row of scores and every token l."""
    return np.sqrt(snr) * scores - 0.5 * snr
