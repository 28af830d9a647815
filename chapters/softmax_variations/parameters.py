"""Parameters of the notebook `softmax_variations`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults are in the notebook."""

    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**8)]],
        Field(min_length=1, max_length=5, description="Prompt lengths $L$ at which strong signals are studied."),
        AfterValidator(different("each is a curve")),
    ]
    published_snrs: Annotated[
        int, Field(ge=4, le=200, description="Number of signal strengths $ν$ from 0 to 12, as in the paper's figure.")
    ]
