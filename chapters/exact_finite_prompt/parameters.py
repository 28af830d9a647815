"""What `exact_finite_prompt` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# So many prompts a length have a mean that is near normal, and a standard error worth its name.
FEWEST_PROMPTS = 100


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    plane_taus: Annotated[int, Field(ge=6, le=200, description="Query sizes across the plane, from 0 to 12.")]
    plane_lengths: Annotated[int, Field(ge=6, le=200, description="Lengths up the plane, from ln L = 0 to 80.")]
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=140)]],
        Field(min_length=2, max_length=8, description="Lengths of the mean answers, as powers of ten."),
        AfterValidator(each_once(2, "it is the growth with the length that is shown")),
    ]
    freezing_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(min_length=2, max_length=8, description="ln L of the freezing curves."),
        AfterValidator(each_once(2, "it is the approach to a limit that is shown")),
    ]
    taus: Annotated[
        list[Annotated[float, Field(ge=0.0, le=8.0)]],
        Field(min_length=2, max_length=6, description="Query sizes of the error curves."),
        AfterValidator(each_once(2, "one of them must be positive to ask for anything")),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**5)]],
        Field(min_length=2, max_length=12, description="Lengths at which prompts are simulated."),
        AfterValidator(each_once(2, "errors are followed along the length")),
    ]
    tokens: Annotated[int, Field(ge=10**5, le=10**10, description="Tokens drawn at one length and query size.")]
    prompts: Annotated[int, Field(ge=500, le=10**6, description="Most prompts drawn at one length and query size.")]
    collapsed_length: Annotated[int, Field(ge=2, le=10**5, description="Length of the prompts of the two samplers.")]
    collapsed_prompts: Annotated[int, Field(ge=500, le=10**5, description="Prompts of each of the two samplers.")]

    @property
    def counts(self) -> dict[int, int]:
        """How many prompts are simulated of each length: as many as the budget of tokens allows."""
        return {length: min(self.prompts, -(-self.tokens // length)) for length in self.lengths}

    @model_validator(mode="after")
    def prompts_for_every_length(self) -> "Parameters":
        """The budget of tokens must leave some of the longest prompts."""
        if self.tokens < FEWEST_PROMPTS * max(self.lengths):
            raise ValueError(
                f"`tokens` must be at least {FEWEST_PROMPTS} times the largest of `lengths`, because means over that "
                "many prompts are compared with the exact ones"
            )
        return self
