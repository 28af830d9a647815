"""Parameters of the notebook `temperature_and_length`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# With this many prompts per length the mean is nearly normal, and its standard error is reliable.
FEWEST_PROMPTS = 200
# Longest prompt for which the quadrature is tested, as ln L.
LONGEST = 330.0


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    reference: Annotated[int, Field(ge=100, le=10**5, description="Length $L₀$ at which the three scalings agree.")]
    ratio: Annotated[
        float, Field(ge=0.65, le=0.75, description="Size $c = τ/√(2 ln L)$ of the scores at the reference length.")
    ]
    points: Annotated[int, Field(ge=6, le=200, description="Number of lengths on each exact curve.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=10**6)]],
        Field(min_length=2, max_length=6, description="Prompt lengths of the simulation."),
        AfterValidator(each_once(2, "the scalings agree at one length and can only be compared at another")),
    ]
    tokens: Annotated[int, Field(ge=10**5, le=10**10, description="Number of tokens simulated per length.")]
    most: Annotated[int, Field(ge=100, le=10**6, description="Largest number of prompts simulated per length.")]
    height: Annotated[
        float, Field(ge=4.6, le=8.0, description="Score of the relevant token, in standard deviations of other scores.")
    ]

    @property
    def counts(self) -> dict[int, int]:
        """Number of simulated prompts by length: as many as `tokens` and `most` allow."""
        return {length: min(self.most, -(-self.tokens // length)) for length in self.lengths}

    @model_validator(mode="after")
    def prompts_for_every_length(self) -> "Parameters":
        """Check that `tokens` allows enough of the longest prompts."""
        if self.tokens < FEWEST_PROMPTS * max(self.lengths):
            raise ValueError(
                f"`tokens` must be at least {FEWEST_PROMPTS} times the largest of `lengths`, because means over this "
                "many prompts are compared with the exact ones"
            )
        return self
