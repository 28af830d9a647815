"""Parameters of the notebook `second_minima`."""

from typing import Annotated

from pydantic import Field

import companion

# Length of the prompts on which second minima are studied.
SECOND_LENGTH = 20


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook has the defaults."""

    seed: Annotated[companion.Seed, Field(description="Seed of all random numbers.")]
    starts: Annotated[int, Field(ge=8, le=512, description="Random starts of exact descent for linear attention.")]
    softmax_starts: Annotated[
        int,
        Field(ge=4, le=512, description="Random starts of stochastic descent for softmax, compared with the minima."),
    ]
