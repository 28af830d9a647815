"""What `temperature_and_length` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# So many prompts a length have a mean that is near normal, and a standard error worth its name.
FEWEST_PROMPTS = 200
# The longest prompt for which the exact theory is guaranteed, as ln L.
LONGEST = 330.0
# Powers of ln L'/ln L that scores are multiplied by where heads are used at another length.
ROOT_POWER, FULL_POWER = 0.5, 1.0
# Lengths of training and of use at which prompts are drawn.
PAIRS = ((10, 100), (100, 10), (100, 1000), (1000, 100))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    reference: Annotated[int, Field(ge=100, le=10**5, description="Length at which the three scalings are one.")]
    ratio: Annotated[
        float, Field(ge=0.65, le=0.75, description="Size of the scores there, in units of the largest: τ/√(2 ln L).")
    ]
    points: Annotated[int, Field(ge=6, le=200, description="Lengths along the exact curves.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=10**6)]],
        Field(min_length=2, max_length=6, description="Lengths at which prompts are simulated."),
        AfterValidator(each_once(2, "the scalings differ away from one length only")),
    ]
    tokens: Annotated[int, Field(ge=10**5, le=10**10, description="Tokens drawn at one length.")]
    most: Annotated[int, Field(ge=100, le=10**6, description="Most prompts drawn at one length.")]
    height: Annotated[
        float, Field(ge=4.6, le=8.0, description="Score of the needle in bounded and in Gaussian hay, in its units.")
    ]
    trained: Annotated[int, Field(ge=50, le=300, description="Length of the prompts that the heads are trained on.")]
    snr: Annotated[float, Field(ge=4.0, le=60.0, description="Strength ν of the hint in retrieval.")]
    dimension: Annotated[int, Field(ge=1, le=20, description="Dimension d of the covariates in regression.")]
    per_decade: Annotated[int, Field(ge=1, le=8, description="Lengths of use per decade, from 10 to a million.")]
    prompts: Annotated[
        int, Field(ge=8000, le=10**6, description="Prompts drawn at each pair of lengths; fewer miss rare queries.")
    ]

    @property
    def counts(self) -> dict[int, int]:
        """How many prompts are simulated of each length: as many as the budget of tokens allows."""
        return {length: min(self.most, -(-self.tokens // length)) for length in self.lengths}

    @property
    def used(self) -> list[int]:
        """Lengths at which heads are used, evenly spaced in their logarithms, that of training among them."""
        steps = range(self.per_decade, 6 * self.per_decade + 1)
        return sorted({self.trained, *(round(10 ** (step / self.per_decade)) for step in steps)})

    @model_validator(mode="after")
    def prompts_for_every_length(self) -> "Parameters":
        """The budget of tokens must leave some of the longest prompts."""
        if self.tokens < FEWEST_PROMPTS * max(self.lengths):
            raise ValueError(
                f"`tokens` must be at least {FEWEST_PROMPTS} times the largest of `lengths`, because means over that "
                "many prompts are compared with the exact ones"
            )
        return self
