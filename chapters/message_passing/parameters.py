"""What `message_passing` can be rerun with."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Prompts and starts of the runs done here are drawn from it.")]
    alpha: Annotated[float, Field(ge=0.5, le=8.0, description="Sample ratio α = n/D of the runs done here.")]
    dimension: Annotated[int, Field(ge=200, le=2000, description="Coordinates of a token in these runs, D.")]
    runs: Annotated[int, Field(ge=6, le=64, description="Sets of prompts, each run from both starts.")]
    iterations: Annotated[int, Field(ge=12, le=60, description="Iterations shown; runs go on until they are at rest.")]
    ratios: Annotated[int, Field(ge=4, le=60, description="Sample ratios on each curve of the state evolution.")]
