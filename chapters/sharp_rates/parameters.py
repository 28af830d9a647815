"""What `sharp_rates` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# Where the exponents are read off: the local slope is then within 1/(2 ln L) or so of its limit.
READ_AT = 300.0
# The heuristic's next term: at ln L a local slope is β - m/(2 ln L), m = 1 but for a multiple largest singular value.
NEXT_TERM = 1 / (2 * READ_AT)


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(
            min_length=3, max_length=60, description=f"ln L at which local slopes are computed; {READ_AT:g} is added."
        ),
        AfterValidator(each_once(3, "curves are drawn through them")),
    ]
    fixed_ratios: Annotated[
        int, Field(ge=8, le=100, description="Ratios a = τ/√(2 ln L) from 0 to 1.2 at which the exponent is read.")
    ]
    ratio_log_lengths: Annotated[
        list[Annotated[float, Field(ge=5.0, le=330.0)]],
        Field(min_length=1, max_length=6, description=f"ln L of the curves at fixed ratio; {READ_AT:g} is added."),
        AfterValidator(each_once(1, "a curve is drawn for each")),
    ]
    norms: Annotated[int, Field(ge=5, le=100, description="Operator norms H² from 1/8 to 8 of the exponent's curve.")]
