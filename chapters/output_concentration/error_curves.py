"""Simulated errors against length, and how they stand in a table."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.output_concentration.experiment import QUERIES, SPREAD, isotropic
from lib.attention import Attention
from lib.concentration import ByImportance, ErrorCurve, error_curve, output_gap, sample_gaps
from lib.measures import Measure


def simulate_errors(
    params: Attention, law: Measure, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> ErrorCurve:
    """The error of prompts of tokens of `law`, each asked standard normal queries of its own."""
    options = {"prompts": prompts, "key": key, "queries_per_prompt": QUERIES}
    gap, wide = ByImportance(output_gap, SPREAD), isotropic(law.dimension, SPREAD)
    return error_curve(lengths, sample_gaps(gap, params, law, wide, lengths, **options))


def as_columns(curve: ErrorCurve, unit: float = 1.0) -> dict[str, np.ndarray]:
    """Length, error and standard error, the latter two over `unit`."""
    return {"length": curve.lengths.astype(float), "error": curve.mean / unit, "std_error": curve.std_error / unit}
