"""Participation, error and its exponent over the plane of query size and prompt length."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.laboratory.grids import Axis, Grid, Values
from chapters.laboratory.trials import Trial, uniform
from lib.finite_prompt import score_statistics

LARGEST_TAU, LARGEST_DECADE = 15.0, 40
# Half of the interval of ln L over which the local slope is taken; smaller intervals give the same slope.
STEP = 1e-3


def solve_plane(nodes: int, settings: int, *, key: PRNGKeyArray) -> Trial:
    """Return ln P, ln Q and the slope at the nodes, and at random settings, uniform in τ and in ln L."""
    highest = LARGEST_DECADE * np.log(10.0)
    axes = [Axis.between("tau", 0.0, LARGEST_TAU, nodes), Axis.between("top", 0.0, np.sqrt(2 * highest), nodes)]
    taus, log_lengths = uniform(key, settings, (0.0, LARGEST_TAU), (0.0, highest))
    places = (np.asarray(taus), np.sqrt(2 * np.asarray(log_lengths)))
    return Trial(Grid.of(axes, exactly), places, exactly(*places))


def exactly(tau: Values, top: Values) -> Mapping[str, Values]:
    """Return the values of the library for queries of size τ and prompts with √(2 ln L) = top."""
    middle = top**2 / 2
    shorter, longer = np.maximum(middle - STEP, 0.0), middle + STEP
    # all lengths of one τ share the nodes of one quadrature
    statistics = score_statistics(tau**2, np.stack([shorter, middle, longer]))
    before, score_error, after = np.asarray(statistics.score_error)
    return {
        "log_participation": np.log(statistics.participation[1]),
        "log_score_error": np.log(score_error),
        "slope": np.log(before / after) / (longer - shorter),
    }
