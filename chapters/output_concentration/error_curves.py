"""Simulated errors against length: as columns of a table, and beside what theory expects."""

import numpy as np
from jaxtyping import Float

from lib.concentration import ErrorCurve


def deviations(curve: ErrorCurve, expected: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Distances of the means from `expected`, in standard errors."""
    return np.abs(curve.mean - expected) / curve.std_error


def as_columns(curve: ErrorCurve, unit: float = 1.0) -> dict[str, np.ndarray]:
    """Length, error and standard error, the latter two over `unit`."""
    return {"length": curve.lengths.astype(float), "error": curve.mean / unit, "std_error": curve.std_error / unit}
