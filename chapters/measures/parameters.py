"""What `measures` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once


def one_and_more(lengths: list[int]) -> list[int]:
    """A prompt of one token, and at least two longer ones to see a rate."""
    if 1 not in lengths or len({length for length in lengths if length > 1}) < 2:
        raise ValueError("needs the length 1 and two longer ones, because a rate is fitted to those and fails at 1")
    return sorted(set(lengths))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    tokens: Annotated[int, Field(ge=10, le=10**4, description="Tokens of the prompt that is shuffled.")]
    changes: Annotated[int, Field(ge=10, le=300, description="Times each change is made to that prompt.")]
    shown_tokens: Annotated[int, Field(ge=10, le=500, description="Tokens drawn in the picture of the tilt.")]
    grid: Annotated[int, Field(ge=16, le=48, description="Points a side at which densities are computed.")]
    mean_tokens: Annotated[int, Field(ge=10**4, le=10**8, description="Tokens that check the tilted mean.")]
    paths: Annotated[int, Field(ge=2, le=12, description="Prompts that grow token by token.")]
    path_length: Annotated[int, Field(ge=10**3, le=10**7, description="Tokens each of them grows to.")]
    spread_lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=10**5)]],
        Field(
            min_length=1, max_length=8, description="Prompt lengths at which the spread between prompts is measured."
        ),
        AfterValidator(each_once(1, "a spread is measured at each")),
    ]
    spread_prompts: Annotated[
        int, Field(ge=15_000, le=10**7, description="Prompts of each of these lengths; fewer miss an error of 10 %.")
    ]
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=2.0)]],
        Field(min_length=1, max_length=4, description="Query sizes τ, the standard deviation of a score."),
        AfterValidator(each_once(1, "an error is measured at each")),
    ]
    short_lengths: Annotated[
        list[Annotated[int, Field(ge=1, le=10**5)]],
        Field(min_length=3, max_length=20, description="Prompt lengths from one token on, 1 among them."),
        AfterValidator(one_and_more),
    ]
    short_prompts: Annotated[int, Field(ge=1000, le=10**6, description="Prompts of each of these lengths.")]

    @model_validator(mode="after")
    def enough_for_the_prompt(self) -> "Parameters":
        """The first of these tokens are the prompt that is shuffled, the next replace some of it."""
        if self.mean_tokens < (needed := self.tokens + self.changes):
            raise ValueError(
                f"`mean_tokens` must be at least `tokens` + `changes`, {needed}, because those are the first of these"
            )
        return self
