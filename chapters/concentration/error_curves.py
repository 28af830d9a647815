"""Simulated errors against length, and their table columns."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.experiment import QUERIES, SPREAD, isotropic
from chapters.concentration.gaps import ByImportance, output_gap, sample_gaps
from lib.attention import Attention
from lib.measures import Measure


def simulate_errors(
    params: Attention, tokens: Measure, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> ErrorCurve:
    """Return the error of prompts with this distribution of tokens, each with fresh standard normal queries."""
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    gap, wide = ByImportance(output_gap, SPREAD), isotropic(tokens.dimension, SPREAD)
    return ErrorCurve.of(lengths, sample_gaps(gap, params, tokens, wide, lengths, **options))


def as_columns(curve: ErrorCurve, unit: float = 1.0) -> dict[str, np.ndarray]:
    """Return the columns length, error and standard error; the last two are divided by `unit`."""
    return {"length": curve.lengths.astype(float), "error": curve.mean / unit, "std_error": curve.std_error / unit}
