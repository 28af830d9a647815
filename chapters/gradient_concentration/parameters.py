"""What `gradient_concentration` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# Up to this query size the error at the longest length is compared with its limit: beyond, rare prompts carry the mean.
MODERATE = 0.5


def some_moderate(taus: list[float]) -> list[float]:
    """One at least where the limit is near."""
    if min(taus) > MODERATE:
        raise ValueError(f"needs a query size of at most {MODERATE}, because the limit law is tested there")
    return taus


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="u of U = uI; V = I.")]
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
        Field(max_length=20, description="Query sizes τ asked one by one, of tokens of scale 1, at least two of them."),
        AfterValidator(each_once(2, "a curve is drawn through them")),
        AfterValidator(some_moderate),
    ]
