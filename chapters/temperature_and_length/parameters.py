"""Parameters of the notebook `temperature_and_length`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# With this many prompts per length the mean is nearly normal, and its standard error is reliable.
FEWEST_PROMPTS = 200
# Longest prompt for which the exact theory is guaranteed, as ln L.
LONGEST = 330.0
# Powers of ln L'/ln L by which scores are multiplied where heads are used at another length.
ROOT_POWER, FULL_POWER = 0.5, 1.0
# Pairs (length of training, length of use) at which prompts are simulated.
PAIRS = ((10, 100), (100, 10), (100, 1000), (1000, 100))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: Annotated[int, Field(ge=0, description="Seed of all random numbers.")]
    reference: Annotated[int, Field(ge=100, le=10**5, description="Length L₀ at which the three scalings agree.")]
    ratio: Annotated[
        float, Field(ge=0.65, le=0.75, description="Size c = τ/√(2 ln L) of the scores at the reference length.")
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
    trained: Annotated[int, Field(ge=50, le=300, description="Prompt length L of training.")]
    snr: Annotated[float, Field(ge=4.0, le=60.0, description="Signal strength ν of the retrieval task.")]
    dimension: Annotated[int, Field(ge=1, le=20, description="Dimension d of the covariates in regression.")]
    per_decade: Annotated[int, Field(ge=1, le=8, description="Lengths of use per decade, from 10 to a million.")]
    prompts: Annotated[
        int,
        Field(
            ge=8000,
            le=10**6,
            description="Number of prompts per pair of lengths; fewer would miss rare queries of large norm.",
        ),
    ]

    @property
    def counts(self) -> dict[int, int]:
        """Number of simulated prompts by length: as many as `tokens` and `most` allow."""
        return {length: min(self.most, -(-self.tokens // length)) for length in self.lengths}

    @property
    def used(self) -> list[int]:
        """Lengths of use, evenly spaced in their logarithms, and the length of training."""
        steps = range(self.per_decade, 6 * self.per_decade + 1)
        return sorted({self.trained, *(round(10 ** (step / self.per_decade)) for step in steps)})

    @model_validator(mode="after")
    def prompts_for_every_length(self) -> "Parameters":
        """Check that `tokens` allows enough of the longest prompts."""
        if self.tokens < FEWEST_PROMPTS * max(self.lengths):
            raise ValueError(
                f"`tokens` must be at least {FEWEST_PROMPTS} times the largest of `lengths`, because means over this "
                "many prompts are compared with the exact ones"
            )
        return self
