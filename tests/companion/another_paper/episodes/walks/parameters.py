"""What `walks` can be rerun with."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Every random number follows from it.")]
    steps: Annotated[
        list[Annotated[int, Field(ge=2, multiple_of=2)]], Field(min_length=1, description="Steps a walk, even numbers.")
    ]
    walkers: Annotated[int, Field(ge=10, description="Independent walkers of each number of steps.")]
    quantile: Annotated[float, Field(gt=0.0, description="Standard errors that the worst comparison may deviate by.")]
