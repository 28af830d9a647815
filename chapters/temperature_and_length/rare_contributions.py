"""Which prompts carry the mean participation: the contribution of prompts whose largest score exceeds x, exactly.

`E[Σp²; all scores ≤ x]` is the integral of `lib.finite_prompt` with the average over each token cut at x. Derived here,
see book/temperature_and_length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from chapters.temperature_and_length.normal_scores import typical_participation
from lib.finite_prompt import LARGEST_TAU, participation

# Range of the scores of the quadrature, in standard deviations: from BELOW to ABOVE beyond the largest of all.
BELOW, ABOVE = -9.0, 9.0
# Gauss nodes per panel; a panel is half a unit of τg wide, and at most a tenth of g. Distance of the levels y.
NODES, STEP = 5, 0.2
# Fraction of the prompts that is called rare.
RARE = 0.01
# Lengths, as ln L: of the averages, and of the contributions. The first of each is a million tokens.
AVERAGE_LENGTHS = (6 * np.log(10.0), 300.0)
CONTRIBUTION_LENGTHS = (6 * np.log(10.0), 30.0, 100.0, 300.0)
# Fractions of the prompts at which contributions are computed.
FRACTIONS = np.geomspace(1e-6, 1.0, 61)
# Size c of scores at which a typical prompt has about the mean participation, for comparison.
SMALL_RATIO = 0.3


@dataclass(frozen=True)
class Contributions:
    """The part of the mean that the prompts with the largest scores carry, at one length.

    `share[k]` is the part that the fraction `chance[k]` of the prompts carries, in the order of their largest scores.
    """

    log_length: float
    ratio: float
    chance: Float[np.ndarray, " n"]
    share: Float[np.ndarray, " n"]

    @property
    def of_other_prompts(self) -> float:
        """The part of the mean in all prompts except the fraction `RARE` with the largest scores."""
        return float(1 - np.interp(np.log(RARE), np.log(self.chance), self.share))


@dataclass(frozen=True)
class Averages:
    """Mean and typical participation at one length, against c = τ/√(2 ln L)."""

    log_length: float
    ratios: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    typical: Float[np.ndarray, " n"]


def solve_averages(log_lengths: Sequence[float], points: int) -> list[Averages]:
    """Return mean and typical participation from c = 0.1 to 1.2, or to the largest τ of the tested domain."""
    averages = []
    for log_length in log_lengths:
        largest = np.sqrt(2 * log_length)
        ratios = np.linspace(0.1, min(1.2, LARGEST_TAU / largest), points)
        taus = np.minimum(ratios * largest, LARGEST_TAU)
        typical = np.asarray([typical_participation(tau, log_length) for tau in taus])
        averages.append(Averages(log_length, ratios, np.asarray(participation(taus, log_length)), typical))
    return averages


def solve_contributions(ratio: float) -> list[Contributions]:
    """Return the contributions at each of `CONTRIBUTION_LENGTHS`, for the same c = τ/√(2 ln L)."""
    return [contributions(ratio, log_length, FRACTIONS) for log_length in CONTRIBUTION_LENGTHS]


def solve_small_score_contributions() -> Contributions:
    """Return the contributions at the longest length for scores of size `SMALL_RATIO`."""
    return contributions(SMALL_RATIO, max(CONTRIBUTION_LENGTHS), FRACTIONS)


def contributions(ratio: float, log_length: float, chances: Float[np.ndarray, " n"]) -> Contributions:
    """Return the part of the mean that the prompts with the largest scores carry, for fractions in ascending order."""
    tau = ratio * np.sqrt(2 * log_length)
    edges, below = mean_below(tau, log_length)
    # probability that some score exceeds the edge
    beyond = -np.expm1(np.exp(log_length) * np.log1p(-np.minimum(norm.sf(edges), 1 - 1e-16)))
    share = 1 - below / float(participation(tau, log_length))
    inside = (beyond > 0) & (beyond < 1)
    at = np.interp(np.log(chances), np.log(beyond[inside][::-1]), share[inside][::-1])
    return Contributions(log_length, ratio, chances, at)


def mean_below(tau: float, log_length: float) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
    """Return edges x and `E[Σp²; all scores ≤ x] = L ∫ b_x φ_x^{L-1} dy`, where φ_x and b_x are cut at x."""
    panels = int(np.ceil((np.sqrt(2 * log_length) + ABOVE - BELOW) * max(10.0, 2 * tau)))
    edges = np.linspace(BELOW, np.sqrt(2 * log_length) + ABOVE, panels + 1)
    unit, width = np.polynomial.legendre.leggauss(NODES)
    half = (edges[1] - edges[0]) / 2
    g = (edges[:-1, None] + half * (1 + unit)).ravel()
    weights = norm.pdf(g) * np.tile(half * width, panels)
    # the integrand is largest near -ln of a typical sum; a sum with one dominant score is larger, and its y smaller
    centre = -log_length - min(tau**2 / 2, tau * np.sqrt(2 * log_length))
    total, beyond, others = np.zeros(panels), norm.sf(edges[1:]), np.expm1(log_length)
    for y in np.arange(centre - 50.0, min(centre + 60.0, 9 * tau + 6.0), STEP):
        u = y + tau * g
        e = np.exp(np.minimum(u, 7.0))
        below = np.cumsum((weights * -np.expm1(-e)).reshape(panels, NODES).sum(axis=1))
        square = np.cumsum((weights * np.exp(2 * np.minimum(u, 7.0) - e)).reshape(panels, NODES).sum(axis=1))
        complement = np.minimum(below + beyond, 1 - 1e-16)
        total += STEP * square * np.exp(log_length + others * np.log1p(-complement))
    return edges[1:], total
