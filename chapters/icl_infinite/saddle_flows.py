"""Flows from starts with the wrong sign, which pass the saddle at zero."""

from collections.abc import Mapping

import numpy as np

from chapters.icl_infinite.block_flows import Flow, solve_flows
from lib.icl import Blocks, LinearRegression

# Size of the starts with the wrong sign, and the imbalance below which escape times are a straight line.
SADDLE_SIZE, SMALL_IMBALANCE = 0.3, 1e-3
# Flows by start: which of b and ‖A‖ is larger, and by how much.
ByStart = Mapping[tuple[str, float], Flow]


def solve_past_the_saddle(d: int, decades: int, points: int) -> ByStart:
    """Return flows at Σ = I from `A = -sI/√d` and b = s, one of them slightly larger, and from A = 0, b = 0."""
    task = LinearRegression(np.eye(d))
    imbalances = 10.0 ** -np.arange(1, decades + 1)
    wrong = -SADDLE_SIZE * np.eye(d) / np.sqrt(d)
    labels, starts = [("neither", 0.0)], [Blocks(np.zeros((d, d)), 0.0)]
    for imbalance in imbalances:
        factor = np.sqrt(1 + imbalance)
        labels += [("gain", imbalance), ("matrix", imbalance)]
        starts += [Blocks(wrong, SADDLE_SIZE * factor), Blocks(wrong * factor, SADDLE_SIZE)]
    times = np.linspace(0.0, (decades * np.log(10) + 8) / np.sqrt(d), points)
    flows = solve_flows([task] * len(starts), starts, [times] * len(starts))
    return dict(zip(labels, flows, strict=True))
