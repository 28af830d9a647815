"""Parameters of the notebook `gaussian_limit`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion

# Smallest number of prompts for which the mean output at a length is drawn and tested.
ENOUGH_PROMPTS = 1000
FEWEST_PROMPTS = 8
# Smallest length to which the dependence on ln L of Laplace prompts is fitted: the corrections, of relative size 1/L,
# are then far below every standard error.
LONG = 1000
# Lengths with fewer prompts are drawn but not fitted, because their weight in the fit would be random itself.
FITTED_PROMPTS = 50
# Limits for prompts of tokens that are not Gaussian: a prompt has at least `TOKENS_PER_PROMPT` tokens for each prompt
# drawn, and all prompts together have at most `MOST_TOKENS` tokens. The mean output of n prompts has a bias of order
# 1/L and a standard error of order 1/√(nL). Their ratio is about 7 √(n/L) for the mixture at the largest tilts, so that
# more prompts would show the bias.
TOKENS_PER_PROMPT = 32
MOST_TOKENS = 2 * 10**7
SHORT = 100


def short_and_long(lengths: list[int]) -> list[int]:
    """Check that one length is short enough for many prompts and two are long enough for a fit; sort the lengths."""
    if min(lengths) > SHORT:
        raise ValueError(f"needs one length of at most {SHORT}, because few prompts are drawn of long ones")
    if len({length for length in lengths if length >= LONG}) < 2:
        raise ValueError(f"needs two different lengths of at least {LONG}, because the growth with L is fitted there")
    return sorted(set(lengths))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**7)]],
        Field(
            min_length=2,
            max_length=12,
            description=f"Prompt lengths $L$: one of at most {SHORT}, two of at least {LONG}.",
        ),
        AfterValidator(short_and_long),
    ]
    prompts: Annotated[int, Field(ge=ENOUGH_PROMPTS, le=10**5, description="Largest number of prompts of a length.")]
    tokens: Annotated[
        int,
        Field(
            ge=SHORT * ENOUGH_PROMPTS,
            le=10**11,
            description=f"Largest number of tokens at one length; never fewer than {FEWEST_PROMPTS} prompts.",
        ),
    ]
    largest_tau: Annotated[float, Field(ge=2.0, le=20.0, description="Largest query size $τ = ‖Γ^{1/2} U z‖$.")]
    queries: Annotated[int, Field(ge=6, le=200, description="Number of query sizes from 0 to the largest.")]
    rate_length: Annotated[int, Field(ge=500, le=10**5, description="Prompt length at which the rate is measured.")]
    rate_prompts: Annotated[int, Field(ge=1000, le=10**6, description="Prompts with which the rate is measured.")]
    measure_length: Annotated[
        int, Field(ge=1600, le=10**5, description="Prompt length for tokens that are not Gaussian.")
    ]
    measure_prompts: Annotated[
        int,
        Field(
            ge=50,
            le=10**5 // TOKENS_PER_PROMPT,
            description=f"Prompts for each of these distributions: at most `measure_length`/{TOKENS_PER_PROMPT}.",
        ),
    ]
    gaussians: Annotated[
        int, Field(ge=2, le=10**4, description="Random Gaussians per dimension with which the lemma is checked.")
    ]
    output_queries: Annotated[
        int, Field(ge=1000, le=10**6, description="Number of Gaussian queries whose outputs are computed.")
    ]
    output_length: Annotated[int, Field(ge=2, le=10**5, description="Length of the finite prompts for these queries.")]

    @model_validator(mode="after")
    def few_prompts_and_tokens(self) -> "Parameters":
        """Check that the bias of finite prompts is about a standard error at most, and that tokens fit in memory."""
        most = min(self.measure_length // TOKENS_PER_PROMPT, MOST_TOKENS // self.measure_length)
        if self.measure_prompts > most:
            raise ValueError(
                f"`measure_prompts` must be at most {most} for `measure_length` = {self.measure_length}: one per "
                f"{TOKENS_PER_PROMPT} tokens of a prompt, because more would show that finite prompts are biased, and "
                f"at most {MOST_TOKENS:,} tokens in all. Got {self.measure_prompts}"
            )
        return self

    @model_validator(mode="after")
    def two_lengths_to_fit(self) -> "Parameters":
        """Check that two lengths have enough prompts for a fit in ln L."""
        fitted = [length for length, count in self.counts.items() if length >= LONG and count >= FITTED_PROMPTS]
        if len(fitted) < 2:
            raise ValueError(
                f"`tokens` must be at least {FITTED_PROMPTS} times the second of the `lengths` from {LONG} on, because "
                "the growth with L is fitted to that many prompts of two lengths"
            )
        return self

    @property
    def counts(self) -> dict[int, int]:
        """Return the number of prompts at each length, as many as the budget of tokens allows."""
        return {length: max(FEWEST_PROMPTS, min(self.prompts, self.tokens // length)) for length in self.lengths}
