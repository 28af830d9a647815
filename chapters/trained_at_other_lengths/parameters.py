"""Parameters of the notebook `trained_at_other_lengths`."""

from typing import Annotated

from pydantic import Field

import companion

# Powers of ln L'/ln L by which scores are multiplied where heads are used at another length.
ROOT_POWER, FULL_POWER = 0.5, 1.0
# Pairs (length of training, length of use) at which prompts are simulated.
PAIRS = ((10, 100), (100, 10), (100, 1000), (1000, 100))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    trained: Annotated[int, Field(ge=50, le=300, description="Prompt length $L$ of training.")]
    snr: Annotated[float, Field(ge=4.0, le=60.0, description="Signal strength $ν$ of the retrieval task.")]
    dimension: Annotated[int, Field(ge=1, le=20, description="Dimension $d$ of the covariates in regression.")]
    per_decade: Annotated[int, Field(ge=1, le=8, description="Lengths of use per decade, from 10 to a million.")]
    prompts: Annotated[
        int,
        Field(
            ge=8000,
            le=10**6,
            description="Number of prompts per pair of lengths; fewer would miss rare queries of large norm.",
        ),
    ]

    @property
    def used(self) -> list[int]:
        """Lengths of use, evenly spaced in their logarithms, and the length of training."""
        steps = range(self.per_decade, 6 * self.per_decade + 1)
        return sorted({self.trained, *(round(10 ** (step / self.per_decade)) for step in steps)})
