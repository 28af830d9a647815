"""Parameters of the notebook `sharp_rates`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# ln L at which the exponents are read: there the local slope is within about 1/(2 ln L) of its limit.
READ_AT = 300.0
# The next term of the heuristic for m = 1: a local slope is β - m/(2 ln L), m the multiplicity of the largest value.
NEXT_TERM = 1 / (2 * READ_AT)


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(
            min_length=3, max_length=60, description=f"$ln L$ at which local slopes are computed; {READ_AT:g} is added."
        ),
        AfterValidator(each_once(3, "the figures draw curves through them")),
    ]
    fixed_ratios: Annotated[int, Field(ge=8, le=100, description="Number of ratios $a = τ/√(2 ln L)$, from 0 to 1.2.")]
    ratio_log_lengths: Annotated[
        list[Annotated[float, Field(ge=5.0, le=330.0)]],
        Field(min_length=1, max_length=6, description=f"$ln L$ of the curves at fixed ratio; {READ_AT:g} is added."),
        AfterValidator(each_once(1, "the figure draws one curve for each")),
    ]
    norms: Annotated[int, Field(ge=5, le=100, description="Number of head sizes $H²$, from 1/8 to 8.")]
