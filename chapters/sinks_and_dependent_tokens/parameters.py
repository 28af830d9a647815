"""Parameters of the notebook `sinks_and_dependent_tokens`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    length: Annotated[int, Field(ge=10, le=10**5, description="Tokens of the simulated prompts with a sink.")]
    sinks: Annotated[
        list[Annotated[float, Field(ge=-10.0, le=40.0)]],
        Field(min_length=2, max_length=4, description="Scores of the sink."),
        AfterValidator(each_once(2, "the figure compares sinks")),
    ]
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=8.0)]],
        Field(min_length=2, max_length=8, description="Query sizes at which prompts with a sink are simulated."),
        AfterValidator(each_once(2, "the figure shows the output as a function of the query size")),
    ]
    prompts: Annotated[int, Field(ge=500, le=10**5, description="Simulated prompts with a sink.")]
    plane_log_length: Annotated[float, Field(ge=50.0, le=200.0, description="$ln L$ of the plane of sinks.")]
    plane_points: Annotated[int, Field(ge=8, le=200, description="Points of the plane in each direction.")]
    sequence_length: Annotated[int, Field(ge=2000, le=10**5, description="Tokens of the prompts of dependent tokens.")]
    sequences: Annotated[int, Field(ge=200, le=10**5, description="Simulated prompts of dependent tokens.")]
    short_sequences: Annotated[int, Field(ge=2000, le=10**6, description="Simulated prompts of few dependent tokens.")]
    frozen_lengths: Annotated[
        list[Annotated[int, Field(ge=20, le=10**5)]],
        Field(min_length=2, max_length=6, description="Lengths of frozen prompts of dependent tokens."),
        AfterValidator(each_once(2, "the figure shows the approach to a limit")),
    ]
    frozen_prompts: Annotated[int, Field(ge=200, le=10**5, description="Simulated frozen prompts of each length.")]
