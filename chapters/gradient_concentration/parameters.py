"""What `gradient_concentration` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion

# Up to this query size the error at the longest length is compared with its limit: beyond, rare prompts carry the mean.
MODERATE = 0.5


def at_least_four(lengths: list[int]) -> list[int]:
    """Two to fit the constants of the bound and two to try them on."""
    if len(set(lengths)) < 4:
        raise ValueError("needs four different lengths: constants are fitted to one half and tried on the other")
    return sorted(set(lengths))


def some_moderate(taus: list[float]) -> list[float]:
    """One at least where the limit is near."""
    if min(taus) > MODERATE:
        raise ValueError(f"needs a query size of at most {MODERATE}, because the limit law is tested there")
    return sorted(set(taus))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="u of U = uI; V = I.")]
    scales: Annotated[
        list[Annotated[float, Field(ge=1.0, le=4.0)]],
        Field(min_length=2, max_length=6, description="Token scales σ, at least two of them."),
        AfterValidator(lambda scales: sorted(set(scales))),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(min_length=4, max_length=12, description="Prompt lengths L."),
        AfterValidator(at_least_four),
    ]
    prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts for each σ and each query size.")]
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=20.0)]],
        Field(min_length=2, max_length=20, description="Query sizes τ asked one by one, of tokens of scale 1."),
        AfterValidator(some_moderate),
    ]
