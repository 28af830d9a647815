"""Parameters of the notebook `finite_samples`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion

# The sample ratios of the tracked training runs.
ALPHAS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)

Positive = Annotated[float, Field(ge=0.25, le=10.0)]


def increasing(alphas: list[float]) -> list[float]:
    """Return the sample ratios if they are different and increasing."""
    if sorted(set(alphas)) != alphas:
        raise ValueError("needs different sample ratios in increasing order, because a curve is drawn through them")
    return alphas


def power_of_two(points: int) -> int:
    """Return the number of points if it is a power of two, at which Sobol sets are balanced."""
    if points & (points - 1):
        raise ValueError("needs a power of 2, because Sobol sets are balanced there")
    return points


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults are in the notebook."""

    alphas: Annotated[
        list[Positive],
        Field(min_length=2, max_length=30, description="Sample ratios $α = n/D$ of the curves, in increasing order."),
        AfterValidator(increasing),
    ]
    points: Annotated[
        int,
        Field(ge=256, le=65536, description="Number of quasi-random prompts in a replica average, a power of 2."),
        AfterValidator(power_of_two),
    ]
    tested: Annotated[
        int, Field(ge=2, le=len(ALPHAS), description="Number of sample ratios at which training runs are compared.")
    ]

    @property
    def compared(self) -> list[float]:
        """Sample ratios at which training runs are compared with theory: `tested` of the tracked ones, evenly
        chosen."""
        return [ALPHAS[len(ALPHAS) * i // self.tested] for i in range(self.tested)]

    @property
    def ratios(self) -> list[float]:
        """Sample ratios of the curves: the requested ones and the compared ones."""
        return sorted({*self.alphas, *self.compared})
