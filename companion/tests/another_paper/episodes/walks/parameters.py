"""Parameters of the notebook `walks`."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the default values are in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Seed of all random numbers.")]
    steps: Annotated[
        list[Annotated[int, Field(ge=2, multiple_of=2)]], Field(min_length=1, description="Even numbers of steps.")
    ]
    walkers: Annotated[int, Field(ge=10, description="Number of independent walkers for each number of steps.")]
    quantile: Annotated[float, Field(gt=0.0, description="Tolerance of the largest deviation, in standard errors.")]
