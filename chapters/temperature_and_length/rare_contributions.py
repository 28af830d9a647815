"""Which prompts carry the mean participation: those whose largest score is beyond x, for every x, exactly.

`E[Σp²; all scores ≤ x]` is the integral of `lib.finite_prompt` with every one-token average cut at x. Derived here, see
book/temperature_and_length.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import norm

from lib.finite_prompt import LARGEST_TAU, participation, typical_participation

# Scores between which a token lies, in standard deviations: below, and above the largest of all.
BELOW, ABOVE = -9.0, 9.0
# A panel of Gauss nodes is half a unit of τg wide, at most a tenth of g; levels y are as far apart as this.
NODES, STEP = 5, 0.2
# The share of prompts that is called rare.
RARE = 0.01
# Lengths, as ln L: of the averages; of the curves of who carries the mean, the first of them a million tokens.
PLANES = (6 * np.log(10.0), 300.0)
LONG = (6 * np.log(10.0), 30.0, 100.0, 300.0)
# Shares of prompts on those curves.
CHANCES = np.geomspace(1e-6, 1.0, 61)
# Scores of a size at which a typical prompt is like the mean, to compare with.
SMALL_RATIO = 0.3


@dataclass(frozen=True)
class Carried:
    """Of one length, prompts in order of their largest score: what share of the mean the rarest of them carry."""

    log_length: float
    ratio: float
    chance: Float[np.ndarray, " n"]
    share: Float[np.ndarray, " n"]

    @property
    def of_the_others(self) -> float:
        """The share that all prompts but the rarest `RARE` carry."""
        return float(1 - np.interp(np.log(RARE), np.log(self.chance), self.share))


@dataclass(frozen=True)
class Averages:
    """Mean and typical participation of one length, against c = τ/√(2 ln L)."""

    log_length: float
    ratios: Float[np.ndarray, " n"]
    mean: Float[np.ndarray, " n"]
    typical: Float[np.ndarray, " n"]


def averages(log_lengths: Sequence[float], points: int) -> list[Averages]:
    """Mean and typical participation from c = 0.1 to 1.2, or to the largest τ that is guaranteed."""
    found = []
    for log_length in log_lengths:
        largest = np.sqrt(2 * log_length)
        ratios = np.linspace(0.1, min(1.2, LARGEST_TAU / largest), points)
        taus = np.minimum(ratios * largest, LARGEST_TAU)
        mean, typical = (np.asarray(of(taus, log_length)) for of in (participation, typical_participation))
        found.append(Averages(log_length, ratios, mean, typical))
    return found


def carried_at_lengths(ratio: float) -> list[Carried]:
    """The same scores, in units of the largest, at each of the lengths `LONG`."""
    return [carried(ratio, log_length, CHANCES) for log_length in LONG]


def carried_by_small() -> Carried:
    """Scores so small that typical and mean participation agree, at the longest."""
    return carried(SMALL_RATIO, max(LONG), CHANCES)


def carried(ratio: float, log_length: float, chances: Float[np.ndarray, " n"]) -> Carried:
    """The share of the mean that the rarest prompts carry, at shares of prompts given in ascending order."""
    tau = ratio * np.sqrt(2 * log_length)
    edges, below = mean_below(tau, log_length)
    # the chance that some score is beyond the edge
    beyond = -np.expm1(np.exp(log_length) * np.log1p(-np.minimum(norm.sf(edges), 1 - 1e-16)))
    share = 1 - below / float(participation(tau, log_length))
    inside = (beyond > 0) & (beyond < 1)
    at = np.interp(np.log(chances), np.log(beyond[inside][::-1]), share[inside][::-1])
    return Carried(log_length, ratio, chances, at)


def mean_below(tau: float, log_length: float) -> tuple[Float[np.ndarray, " edges"], Float[np.ndarray, " edges"]]:
    """Edges x, and `E[Σp²; all scores ≤ x] = L ∫ b_x φ_x^{L-1} dy`, φ_x and b_x being cut at x."""
    panels = int(np.ceil((np.sqrt(2 * log_length) + ABOVE - BELOW) * max(10.0, 2 * tau)))
    edges = np.linspace(BELOW, np.sqrt(2 * log_length) + ABOVE, panels + 1)
    unit, width = np.polynomial.legendre.leggauss(NODES)
    half = (edges[1] - edges[0]) / 2
    g = (edges[:-1, None] + half * (1 + unit)).ravel()
    weights = norm.pdf(g) * np.tile(half * width, panels)
    # most of the sum lies near its mean; where one score rules, it is larger, and y is smaller
    centre = -log_length - min(tau**2 / 2, tau * np.sqrt(2 * log_length))
    total, beyond, others = np.zeros(panels), norm.sf(edges[1:]), np.expm1(log_length)
    for y in np.arange(centre - 50.0, min(centre + 60.0, 9 * tau + 6.0), STEP):
        u = y + tau * g
        e = np.exp(np.minimum(u, 7.0))
        lost = np.cumsum((weights * -np.expm1(-e)).reshape(panels, NODES).sum(axis=1))
        square = np.cumsum((weights * np.exp(2 * np.minimum(u, 7.0) - e)).reshape(panels, NODES).sum(axis=1))
        kept = np.minimum(lost + beyond, 1 - 1e-16)
        total += STEP * square * np.exp(log_length + others * np.log1p(-kept))
    return edges[1:], total
