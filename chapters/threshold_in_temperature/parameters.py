"""Parameters of the notebook `threshold_in_temperature`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# Decimal logarithm of the longest prompt, at which the width is compared with its limit.
LONGEST_DECADE = 40


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the default values are in the notebook."""

    seed: companion.Seed
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=12)]],
        Field(
            min_length=2,
            max_length=8,
            description="Prompt lengths $L = 10^{\\mathrm{decade}}$ of the curves over temperature.",
        ),
        AfterValidator(different("each is a curve, and lengths are compared")),
    ]
    temperatures: Annotated[int, Field(ge=10, le=200, description="Number of temperatures from 0.3 to 3.")]
    variance: Annotated[float, Field(ge=0.15, le=0.9, description="Variance $γ²$ of the relevant token.")]
    width_decades: Annotated[
        list[Annotated[int, Field(ge=1, le=40)]],
        Field(
            min_length=2,
            max_length=20,
            description="Prompt lengths $L = 10^{\\mathrm{decade}}$ at which the width is solved.",
        ),
        AfterValidator(different("widths at several lengths are compared")),
    ]
    dimension: Annotated[int, Field(ge=50, le=400, description="Dimension $d$ of the tokens in the last figure.")]
    length: Annotated[int, Field(ge=5, le=200, description="Prompt length $L$ in the last figure.")]
    sharpness: Annotated[
        float,
        Field(ge=0.4, le=1.4, description="Scale $β$ of the scores in the last figure: they have the spread $β√d$."),
    ]
    overlaps: Annotated[int, Field(ge=9, le=400, description="Number of overlaps on the curves of the last figure.")]
    prompts: Annotated[int, Field(ge=4000, le=10**7, description="Simulated prompts at each of six overlaps.")]

    @property
    def all_width_decades(self) -> list[int]:
        """Decimal logarithms of the lengths at which the width is solved, the longest one included."""
        return sorted({*self.width_decades, LONGEST_DECADE})
