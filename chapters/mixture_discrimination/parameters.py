"""Parameters of the notebook `mixture_discrimination`."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings of the parameters; the notebook holds the defaults."""

    seed: companion.Seed
    prompt_length: Annotated[int, Field(ge=200, le=100_000, description="Length $L$ of the finite prompts.")]
    prompts: Annotated[int, Field(ge=200, le=100_000, description="Number of finite prompts per query.")]
    flow_starts: Annotated[
        int, Field(ge=1, le=10, description="Starts of the gradient flow at distance 0.1 from each minimiser.")
    ]
    training_steps: Annotated[int, Field(ge=800, le=200_000, multiple_of=20, description="Steps of SGD.")]
    training_runs: Annotated[int, Field(ge=2, le=20, description="Number of runs of SGD for each kind of start.")]
