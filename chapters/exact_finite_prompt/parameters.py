"""Parameters of the notebook `exact_finite_prompt`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# With this many prompts per length, means are nearly normal and standard errors are reliable.
FEWEST_PROMPTS = 100


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    plane_taus: Annotated[int, Field(ge=6, le=200, description="Number of query sizes in the plane, from 0 to 12.")]
    plane_lengths: Annotated[
        int, Field(ge=6, le=200, description="Number of lengths in the plane, from $ln L = 0$ to 80.")
    ]
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=140)]],
        Field(min_length=2, max_length=8, description="Lengths for the mean outputs, as powers of ten."),
        AfterValidator(each_once(2, "the figure shows the growth with the length")),
    ]
    freezing_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(min_length=2, max_length=8, description="$ln L$ of the freezing curves."),
        AfterValidator(each_once(2, "the figure shows the approach to a limit")),
    ]
    taus: Annotated[
        list[Annotated[float, Field(ge=0.0, le=8.0)]],
        Field(min_length=2, max_length=6, description="Query sizes of the error curves."),
        AfterValidator(each_once(2, "a query of size 0 has no direction, so one must be positive")),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**5)]],
        Field(min_length=2, max_length=12, description="Lengths at which prompts are simulated."),
        AfterValidator(each_once(2, "the figure shows the error as a function of the length")),
    ]
    tokens: Annotated[int, Field(ge=10**5, le=10**10, description="Tokens drawn at one length and query size.")]
    prompts: Annotated[int, Field(ge=500, le=10**6, description="Most prompts drawn at one length and query size.")]
    collapsed_length: Annotated[int, Field(ge=2, le=10**5, description="Length of the prompts of the two samplers.")]
    collapsed_prompts: Annotated[int, Field(ge=500, le=10**5, description="Prompts of each of the two samplers.")]

    @property
    def counts(self) -> dict[int, int]:
        """Return the number of prompts per length that the budget of tokens allows, at most `prompts`."""
        return {length: min(self.prompts, -(-self.tokens // length)) for length in self.lengths}

    @model_validator(mode="after")
    def prompts_for_every_length(self) -> "Parameters":
        """Check that the budget of tokens allows enough of the longest prompts."""
        if self.tokens < FEWEST_PROMPTS * max(self.lengths):
            raise ValueError(
                f"`tokens` must be at least {FEWEST_PROMPTS} times the largest of `lengths`, because the comparison "
                "with the exact theory needs means over that many prompts"
            )
        return self
