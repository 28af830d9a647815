"""Heads that descents leave above the optimum: their share, and the other minimum at which one of them settles."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chapters.published_experiment.descents import Descents
from chapters.published_experiment.minima import alignment, least_curvature, settle
from chapters.published_experiment.optima import Optima
from chapters.published_experiment.parameters import SECOND_LENGTH
from chapters.published_experiment.protocol import CLOSE, POOLS


def found_up_to(optima: Optima, law: str, activation: str) -> float:
    """The largest mean square at which a head has found the optimum."""
    return (1 + CLOSE) * optima[law, activation, SECOND_LENGTH]


def trapped_share(descents: Descents, optima: Optima, activation: str, law: str) -> float:
    """Of the starts, how many end above the optimum."""
    ends = descents[activation, law].risks[:, -1]
    return float(np.mean(ends > found_up_to(optima, law, activation)))


@dataclass(frozen=True)
class SecondMinimum:
    """Where a trapped head settles: its mean square; curvatures there and at the head that answers 0.

    `aligned` is the cosine with the covariates' first principal axis of what the head scores by labels and of what
    it takes values from, the lesser of the two.
    """

    square: float
    curvature: float
    at_zero: float
    aligned: float


# Second minima by activation.
SecondMinima = Mapping[str, SecondMinimum]


def second_minima(descents: Descents) -> SecondMinima:
    """Settle one head of each kind that is trapped under the corrected law."""
    return {activation: _second_minimum(descents, activation) for activation in POOLS}


def _second_minimum(descents: Descents, activation: str) -> SecondMinimum:
    paths = descents[activation, "corrected"]
    # one of the upper half, but not the highest, which may still be on its way
    trapped = np.argsort(paths.risks[:, -1])[int(0.8 * len(paths.risks))]
    point, square = settle(activation, paths.points[trapped, -1])
    curvature, at_zero = (least_curvature(activation, each) for each in (point, np.zeros_like(point)))
    return SecondMinimum(square, curvature, at_zero, alignment(point))
