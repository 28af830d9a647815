"""What `needle_in_a_long_prompt` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# From these two lengths, as decimal logarithms, the trends in L are read.
SHORT_DECADE, LONG_DECADE = 4, 12


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=12)]],
        Field(min_length=2, max_length=8, description="Prompt lengths L = 10^decade of the curves."),
        AfterValidator(different("each is a curve, and the shortest is compared")),
    ]
    ratios: Annotated[int, Field(ge=7, le=200, description="Hint strengths ν/(2 ln L) from 0.05 to 2.4.")]

    @property
    def curve_decades(self) -> list[int]:
        """The lengths of the curves, the longest of the book among them."""
        return sorted({*self.decades, LONG_DECADE})

    @property
    def price_decades(self) -> list[int]:
        """The lengths at which the price is found: those of the curves, and the two that its trend is read from."""
        return sorted({*self.decades, SHORT_DECADE, LONG_DECADE})
