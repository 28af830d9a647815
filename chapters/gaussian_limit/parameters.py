"""What `gaussian_limit` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion

# From this many prompts on, the mean output of a length is drawn and tested.
ENOUGH_PROMPTS = 1000
FEWEST_PROMPTS = 8
# From this length on the laws in ln L of Laplace prompts are fitted: the corrections, of relative size 1/L, are then
# far below every standard error.
LONG = 1000
# Lengths with fewer prompts are drawn and not fitted: the weight that a fit gives them would be random itself.
FITTED_PROMPTS = 50
SHORT = 100


def short_and_long(lengths: list[int]) -> list[int]:
    """In order: one length short enough to afford many prompts, two long enough to see a growth law."""
    if min(lengths) > SHORT:
        raise ValueError(f"needs one length of at most {SHORT}, because few prompts are drawn of long ones")
    if len({length for length in lengths if length >= LONG}) < 2:
        raise ValueError(f"needs two different lengths of at least {LONG}, because laws in L are fitted there")
    return sorted(set(lengths))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**7)]],
        Field(min_length=2, max_length=12, description=f"Prompt lengths L, one at most {SHORT}, two at least {LONG}."),
        AfterValidator(short_and_long),
    ]
    prompts: Annotated[int, Field(ge=ENOUGH_PROMPTS, le=10**5, description="Most prompts drawn at one length.")]
    tokens: Annotated[
        int,
        Field(
            ge=SHORT * ENOUGH_PROMPTS,
            le=10**11,
            description=f"Tokens drawn at one length: long prompts are fewer, never below {FEWEST_PROMPTS}.",
        ),
    ]
    largest_tau: Annotated[float, Field(ge=2.0, le=20.0, description="Largest query size τ = ‖Γ^{1/2} U z‖.")]
    queries: Annotated[int, Field(ge=6, le=200, description="Query sizes between 0 and the largest, both included.")]
    rate_length: Annotated[int, Field(ge=500, le=10**5, description="Prompt length at which the rate is measured.")]
    rate_prompts: Annotated[int, Field(ge=1000, le=10**6, description="Prompts that measure the rate.")]
    measure_length: Annotated[
        int, Field(ge=1000, le=10**6, description="Prompt length for the measures that are not Gaussian.")
    ]
    measure_prompts: Annotated[int, Field(ge=50, le=10**4, description="Prompts for each of those measures.")]
    gaussians: Annotated[int, Field(ge=2, le=10**4, description="Random Gaussians of each dimension for the lemma.")]
    output_queries: Annotated[int, Field(ge=1000, le=10**6, description="Gaussian queries whose outputs are drawn.")]
    output_length: Annotated[int, Field(ge=2, le=10**5, description="Length of the finite prompts that answer them.")]

    @model_validator(mode="after")
    def two_lengths_to_fit(self) -> "Parameters":
        """A law in ln L needs two lengths, each with prompts enough."""
        fitted = [length for length, count in self.counts.items() if length >= LONG and count >= FITTED_PROMPTS]
        if len(fitted) < 2:
            raise ValueError(
                f"`tokens` must be at least {FITTED_PROMPTS} times the second of the `lengths` from {LONG} on, because "
                "laws in L are fitted to that many prompts of two lengths"
            )
        return self

    @property
    def counts(self) -> dict[int, int]:
        """How many prompts are drawn of each length: as many as the budget of tokens allows."""
        return {length: max(FEWEST_PROMPTS, min(self.prompts, self.tokens // length)) for length in self.lengths}
