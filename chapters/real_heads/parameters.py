"""Parameters of the notebook `real_heads`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# Number of positions of the network, which is the length of the longest prompts.
LONGEST = 512


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: Annotated[
        companion.Seed, Field(description="Seed of all random numbers: shuffles, simulated prompts, bootstrap.")
    ]
    shorter: Annotated[
        list[Annotated[int, Field(ge=8, le=256)]],
        Field(min_length=1, max_length=5, description="Prompt lengths that are compared with the longest, 512."),
        AfterValidator(different("each length is measured once")),
    ]
    prompts: Annotated[int, Field(ge=4, le=35, description="Number of stretches of the text that serve as prompts.")]
    drawn: Annotated[
        int, Field(ge=16, le=4096, description="Number of simulated prompts per head and length, for the controls.")
    ]

    @property
    def lengths(self) -> list[int]:
        """The lengths of all prompts, with the number of positions of the network as the longest."""
        return [*sorted(self.shorter), LONGEST]
