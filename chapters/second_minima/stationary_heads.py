"""Heads at which training can stop: the optimum, the best swapped head, and a second minimum."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

import jax
import numpy as np
from jaxtyping import Float

from chapters.published_experiment.head_points import ALIGNED_ENTRIES, SWAPPED_ENTRIES
from chapters.published_experiment.protocol import CLOSE, LAWS, POOLS, WIDTH
from chapters.second_minima.descents import Descents, Paths
from chapters.second_minima.landscape import (
    copies,
    distance,
    head_at,
    least_curvature,
    linear_square,
    settle,
    softmax_square,
    task_of,
)
from lib.icl import PairAverage

# Names in published tables.
OPTIMUM, SECOND, ELSEWHERE = "optimum", "second minimum", "elsewhere"
SWAPPED = "wrong way"  # prose: keep (a value in published tables)


@dataclass(frozen=True)
class StationaryHead:
    """A head at which the mean square is stationary, as a point, with its mean square."""

    point: Float[np.ndarray, " n"]
    square: float


@dataclass(frozen=True)
class StationaryHeads:
    """Best aligned and best swapped head, and the minimum below the swapped one, for one activation and covariances."""

    activation: str
    optimum: StationaryHead
    swapped: StationaryHead
    minimum_beyond: StationaryHead

    @property
    def second(self) -> bool:
        """Return whether descent from the best swapped head ends at a minimum above the optimum."""
        return self.minimum_beyond.square > (1 + CLOSE) * self.optimum.square

    @property
    def named(self) -> dict[str, StationaryHead]:
        """Return the stationary heads by name."""
        return {OPTIMUM: self.optimum, SWAPPED: self.swapped} | ({SECOND: self.minimum_beyond} if self.second else {})

    @property
    def reach(self) -> float:
        """Return half the least distance between two of them: a head that is nearer is near one of them only."""
        points = [place.point for place in self.named.values()]
        apart = [distance(self.activation, a, b) for i, a in enumerate(points) for b in points[:i]]
        return min(apart) / 2

    def of(self, point: Float[np.ndarray, " n"], square: float) -> str:
        """Return the name of the stationary head that a head is at, by its mean square and its distance."""
        for name, place in self.named.items():
            if abs(square / place.square - 1) <= CLOSE and distance(self.activation, point, place.point) < self.reach:
                return name
        return ELSEWHERE


# Stationary heads by (activation, law).
Landscapes = Mapping[tuple[str, str], StationaryHeads]


def solve_stationary_heads() -> Landscapes:
    """Return the stationary heads of both activations for both covariances; no start is random."""
    return {(activation, law): find_heads_of(activation, law) for law in LAWS for activation in POOLS}


def find_heads_of(activation: str, law: str) -> StationaryHeads:
    """Return the stationary heads of one activation for one pair of covariances."""
    right, wrong = np.zeros(WIDTH * WIDTH), np.zeros(WIDTH * WIDTH)
    right[ALIGNED_ENTRIES] = np.append(np.eye(WIDTH - 1).ravel(), 1.0) / 2
    wrong[SWAPPED_ENTRIES] = 0.3  # all covariates alike, near the first principal axis
    wrong = settle(activation, wrong, law=law, family=SWAPPED_ENTRIES)
    points = {
        "optimum": settle(activation, right, law=law, family=ALIGNED_ENTRIES),
        "swapped": wrong,
        "minimum_beyond": settle(activation, wrong + 0.1 * right, law=law),
    }
    task = task_of(law)
    # rounding decides where along the flat direction of linear attention a search ends, and curvatures depend on it
    points = {name: copies(activation, point)[0] for name, point in points.items()}
    square = linear_square if activation == "linear" else partial(_softmax_square, average=_nodes())
    places = {name: StationaryHead(point, float(square(task, head_at(point)))) for name, point in points.items()}
    return StationaryHeads(activation, **places)


_softmax_square = jax.jit(softmax_square)


@cache
def _nodes() -> PairAverage:
    """Return the library's default nodes."""
    return PairAverage.of_frames(WIDTH - 1)


def solve_least_curvatures(landscapes: Landscapes) -> dict[tuple[str, str, str], float]:
    """Return the least curvature at every stationary head except the optima, by activation, covariances and name."""
    return {
        (activation, law, name): least_curvature(activation, place.point, law=law)
        for (activation, law), places in landscapes.items()
        for name, place in places.named.items()
        if name != OPTIMUM
    }


def classify_ends(paths: Paths, places: StationaryHeads) -> list[str]:
    """Return the name of the stationary head at which each start ends."""
    return [places.of(point, square) for point, square in zip(paths.points[:, -1], paths.risks[:, -1], strict=True)]


def count_ends(descents: Descents, landscapes: Landscapes, activation: str, law: str, *names: str) -> int:
    """Return the number of starts that end at one of these stationary heads."""
    return sum(name in names for name in classify_ends(descents[activation, law], landscapes[activation, law]))
