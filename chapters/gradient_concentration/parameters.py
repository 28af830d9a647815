"""Parameters of the notebook `gradient_concentration`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# Largest query size at which the error is compared with its limit; beyond it, rare prompts dominate the mean.
MODERATE = 0.5


def some_moderate(taus: list[float]) -> list[float]:
    """Check that at least one query is small enough for a comparison with the limit."""
    if min(taus) > MODERATE:
        raise ValueError(f"needs a query size of at most {MODERATE}, because the limit is tested there")
    return taus


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: Annotated[int, Field(ge=0, description="Seed of all random numbers.")]
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="Size u of the head U = uI, V = I.")]
    scales: Annotated[
        list[Annotated[float, Field(ge=1.0, le=4.0)]],
        Field(max_length=6, description="Token scales σ, at least two of them."),
        AfterValidator(each_once(2, "one pair of constants is fitted for several scales")),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(max_length=12, description="Prompt lengths L, at least four of them."),
        AfterValidator(each_once(4, "constants are fitted to one half of the lengths and tried on the other")),
    ]
    prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts for each σ and each query size.")]
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=20.0)]],
        Field(max_length=20, description="Sizes τ of single queries for tokens of scale 1, at least two of them."),
        AfterValidator(each_once(2, "a curve is drawn through them")),
        AfterValidator(some_moderate),
    ]
