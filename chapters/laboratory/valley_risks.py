"""Risks of heads A = uI with gain b on in-context regression."""

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.laboratory import regression_heads
from chapters.laboratory.grids import Axis, Grid
from chapters.laboratory.ranges import LARGEST_VALLEY_GAIN, VALLEY_TILTS
from chapters.laboratory.trials import Trial, uniform

DIMENSIONS, NOISES = (1.0, 2.0, 5.0, 10.0), (0.0, 0.1, 1.0)
SHORTEST, LARGEST_DECADE = 5.0, 6


def solve_valley_risks(lengths: int, tilts: int, tested: int, heads: int, *, key: PRNGKeyArray) -> Trial:
    """Return the parts of the risk at the nodes, and risks of random heads at each of some random lengths."""
    ends = (np.log(SHORTEST), np.log(10.0**LARGEST_DECADE))
    axes = [
        Axis("dimension", np.asarray(DIMENSIONS)),
        Axis.between("log_length", *ends, lengths),
        Axis.between("tilt", *VALLEY_TILTS, tilts),
        Axis("noise", np.asarray(NOISES)),
    ]
    count = tested * heads
    settings = uniform(
        key, count, (0, len(DIMENSIONS)), ends, VALLEY_TILTS, (0, len(NOISES)), (0.0, LARGEST_VALLEY_GAIN)
    )
    dimension, log_length, tilt, noise, share = map(np.asarray, settings)
    dimension, noise = np.asarray(DIMENSIONS)[dimension.astype(int)], np.asarray(NOISES)[noise.astype(int)]
    log_length = np.repeat(log_length[:tested], heads)
    places = (dimension, log_length, tilt, noise)
    excess = regression_heads.excess(dimension, noise, log_length, tilt, share / tilt)
    linear = regression_heads.linear_excess(dimension, noise, log_length)
    expected = {"share": share, "excess": excess, "log_linear": np.log(linear)}
    return Trial(Grid.of(axes, regression_heads.parts), places, expected)
