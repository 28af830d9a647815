"""Errors of the output in several dimensions, from the same simulated scores."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.gaps import sample_isotropic
from lib.concentration import RadialTable


def simulate_errors(
    table: RadialTable,
    norm: float,
    dimensions: Sequence[int],
    lengths: Sequence[int],
    prompts: int,
    *,
    key: PRNGKeyArray,
) -> dict[int, ErrorCurve]:
    """Return errors over σ² at H = `norm`, with the same scores in every dimension and exact means over the rest."""
    samples = np.asarray(sample_isotropic(table, norm, dimensions, lengths, prompts=prompts, key=key))
    return {d: ErrorCurve.of(lengths, samples[:, index]) for index, d in enumerate(dimensions)}
