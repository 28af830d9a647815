"""The parameters of `walks`."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook has the default values."""

    seed: Annotated[int, Field(ge=0, description="Every random number follows from it.")]
    steps: Annotated[
        list[Annotated[int, Field(ge=2, multiple_of=2)]],
        Field(min_length=1, description="Steps of each walk, even numbers."),
    ]
    walkers: Annotated[int, Field(ge=10, description="Independent walkers for each number of steps.")]
    quantile: Annotated[float, Field(gt=0.0, description="Largest allowed deviation of a mean, in standard errors.")]
