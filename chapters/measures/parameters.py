"""Parameters of the notebook `measures`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once


def one_and_more(lengths: list[int]) -> list[int]:
    """Check that the length 1 and two longer ones are given, and return the lengths in order."""
    if 1 not in lengths or len({length for length in lengths if length > 1}) < 2:
        raise ValueError("needs the length 1 and two longer ones, because a rate is fitted to those and fails at 1")
    return sorted(set(lengths))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    tokens: Annotated[int, Field(ge=10, le=10**4, description="Tokens of the prompt that is shuffled.")]
    changes: Annotated[
        int, Field(ge=10, le=300, description="Number of times that each change is made to that prompt.")
    ]
    shown_tokens: Annotated[int, Field(ge=10, le=500, description="Tokens shown in the figure of the tilt.")]
    grid: Annotated[int, Field(ge=16, le=48, description="Grid points per side at which densities are computed.")]
    mean_tokens: Annotated[int, Field(ge=10**4, le=10**8, description="Tokens with which the tilted mean is checked.")]
    paths: Annotated[int, Field(ge=2, le=12, description="Prompts that grow token by token.")]
    path_length: Annotated[int, Field(ge=10**3, le=10**7, description="Final length of the prompts that grow.")]
    spread_lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=10**5)]],
        Field(
            min_length=1, max_length=8, description="Prompt lengths at which the spread between prompts is measured."
        ),
        AfterValidator(each_once(1, "a spread is measured at each")),
    ]
    spread_prompts: Annotated[
        int,
        Field(
            ge=15_000, le=10**7, description="Prompts of each of these lengths; fewer do not detect an error of 10 %."
        ),
    ]
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=2.0)]],
        Field(min_length=1, max_length=4, description="Query sizes $τ$, the standard deviation of a score."),
        AfterValidator(each_once(1, "an error is measured at each")),
    ]
    short_lengths: Annotated[
        list[Annotated[int, Field(ge=1, le=10**5)]],
        Field(
            min_length=3,
            max_length=20,
            description="Prompt lengths of the figure of short prompts; 1 must be one of them.",
        ),
        AfterValidator(one_and_more),
    ]
    short_prompts: Annotated[int, Field(ge=1000, le=10**6, description="Prompts of each of these lengths.")]

    @model_validator(mode="after")
    def enough_for_the_prompt(self) -> "Parameters":
        """Check that `mean_tokens` suffices for the shuffled prompt and the tokens that replace some of its tokens."""
        if self.mean_tokens < (needed := self.tokens + self.changes):
            raise ValueError(
                f"`mean_tokens` must be at least `tokens` + `changes`, {needed}, because those are the first of these"
            )
        return self
