"""The mean error at several lengths of the prompt, with its error.

[BB26, Prop. 3.1] and [BB26, Prop. 3.4] bound the mean square errors of outputs and gradients in L²(ν). A gap is the
integrand at one prompt and one query, and an `ErrorCurve` is its mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int


@dataclass(frozen=True)
class ErrorCurve:
    """Mean errors at several lengths, and the covariance of these means, since lengths may share prompts."""

    lengths: Int[np.ndarray, " k"]
    mean: Float[np.ndarray, " k"]
    cov: Float[np.ndarray, "k k"]

    @classmethod
    def of(cls, lengths: Sequence[int], samples: npt.ArrayLike) -> "ErrorCurve":
        """Return the mean over independent rows, with one column per length, and its covariance."""
        rows = np.asarray(samples)
        cov = np.atleast_2d(np.cov(rows, rowvar=False)) / len(rows)
        return cls(np.asarray(lengths), rows.mean(axis=0), cov)

    @property
    def std_error(self) -> Float[np.ndarray, " k"]:
        """The standard error of each mean."""
        return np.sqrt(np.diagonal(self.cov))

    def deviations(self, expected: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return `|mean - expected|` in standard errors."""
        return np.abs(self.mean - expected) / self.std_error
