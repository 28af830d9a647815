"""What `sharp_rates` can be rerun with."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(min_length=3, max_length=60, description="ln L at which local slopes are computed; 300 is added."),
    ]
    fixed_ratios: Annotated[
        int, Field(ge=8, le=100, description="Ratios a = τ/√(2 ln L) from 0 to 1.2 at which the exponent is read.")
    ]
    ratio_log_lengths: Annotated[
        list[Annotated[float, Field(ge=5.0, le=330.0)]],
        Field(min_length=1, max_length=6, description="ln L of the curves at fixed ratio; 300 is added."),
    ]
    norms: Annotated[int, Field(ge=5, le=100, description="Operator norms H² from 1/8 to 8 of the exponent's curve.")]
