"""What `real_heads` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# The network has places for so many tokens, and what is said of long prompts is said of this length.
LONGEST = 512


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Every random number follows from it: shuffles, draws, resamples.")]
    shorter: Annotated[
        list[Annotated[int, Field(ge=8, le=256)]],
        Field(min_length=1, max_length=5, description="Tokens of the prompts that are compared with those of 512."),
        AfterValidator(different("each is followed once")),
    ]
    prompts: Annotated[int, Field(ge=4, le=35, description="Stretches of the text that are prompts.")]
    drawn: Annotated[int, Field(ge=16, le=4096, description="Prompts drawn a head and length, for the controls.")]

    @property
    def lengths(self) -> list[int]:
        """The lengths of all prompts, the longest being what the network has places for."""
        return [*sorted(self.shorter), LONGEST]
