"""Parameters of the notebook `message_passing`."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults are in the notebook."""

    seed: Annotated[companion.Seed, Field(description="Seed of the prompts and starts of the runs.")]
    alpha: Annotated[float, Field(ge=0.5, le=8.0, description="Sample ratio $α = n/D$ of the runs.")]
    dimension: Annotated[int, Field(ge=200, le=2000, description="Dimension $D$ of the tokens in these runs.")]
    runs: Annotated[int, Field(ge=6, le=64, description="Number of sets of prompts, each with a run from both starts.")]
    iterations: Annotated[int, Field(ge=12, le=60, description="Iterations shown; the runs continue until rest.")]
    ratios: Annotated[int, Field(ge=4, le=60, description="Sample ratios per curve of the state evolution.")]
