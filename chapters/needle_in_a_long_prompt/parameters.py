"""Parameters of the notebook `needle_in_a_long_prompt`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# Decimal logarithms of the two lengths from which trends in L are measured.
SHORT_DECADE, LONG_DECADE = 4, 12


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults are in the notebook."""

    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=12)]],
        Field(min_length=2, max_length=8, description="Prompt lengths $L = 10^{\\mathrm{decade}}$ of the curves."),
        AfterValidator(different("each is a curve, and the shortest is compared")),
    ]
    ratios: Annotated[int, Field(ge=7, le=200, description="Number of signal strengths $ν/(2 ln L)$ from 0.05 to 2.4.")]

    @property
    def curve_decades(self) -> list[int]:
        """Decimal logarithms of the lengths of the curves, the longest length included."""
        return sorted({*self.decades, LONG_DECADE})

    @property
    def price_decades(self) -> list[int]:
        """Decimal logarithms of the lengths at which thresholds are solved: those of the curves and of the trends."""
        return sorted({*self.decades, SHORT_DECADE, LONG_DECADE})
