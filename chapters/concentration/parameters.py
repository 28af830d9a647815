"""Parameters of the notebook `concentration`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# Largest query size at which the error of a gradient is compared with its limit; beyond it, rare prompts dominate the
# mean.
MODERATE = 0.5


def some_moderate(taus: list[float]) -> list[float]:
    """Check that at least one query is small enough for a comparison with the limit."""
    if min(taus) > MODERATE:
        raise ValueError(f"needs a query size of at most {MODERATE}, because the limit is tested there")
    return taus


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="Size $u$ of the head $U = uI$, $V = I$.")]
    scales: Annotated[
        list[Annotated[float, Field(ge=1.0, le=4.0)]],
        Field(max_length=6, description="Token scales $σ$, at least two of them."),
        AfterValidator(each_once(2, "one pair of constants of a bound is fitted for several scales")),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(max_length=12, description="Prompt lengths $L$ whose outputs are simulated, at least four of them."),
        AfterValidator(
            each_once(4, "a fit to the errors of each distribution has three coefficients, and one point must remain")
        ),
    ]
    prompts: Annotated[
        int, Field(ge=200, le=10**6, description="Prompts for each $σ$ and each distribution of tokens.")
    ]
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=16)]],
        Field(max_length=6, description="Dimensions to compare, at least two of them."),
        AfterValidator(each_once(2, "the decay in one dimension is compared with that in another")),
    ]
    dimension_scale: Annotated[float, Field(ge=1.0, le=1.6, description="$σ$ at which dimensions are compared.")]
    dimension_lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(max_length=8, description="Prompt lengths simulated in each dimension."),
        AfterValidator(each_once(1, "each simulation needs a length")),
    ]
    dimension_prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts in each dimension.")]
    law_scale: Annotated[
        float, Field(ge=1.8, le=3.0, description="$σ$ at which four distributions of tokens are compared.")
    ]
    truncation: Annotated[float, Field(ge=0.2, le=1.0, description="$κ$ of the truncation $M = L^κ$ of the proof.")]
    partition_length: Annotated[
        int, Field(ge=16, le=10**5, description="Prompt length $L$ of the partition functions.")
    ]
    partition_prompts: Annotated[int, Field(ge=500, le=10**6, description="Number of simulated partition functions.")]
    gradient_lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(max_length=12, description="Prompt lengths $L$ whose gradients are simulated, at least four of them."),
        AfterValidator(each_once(4, "the decay of the errors at each scale is fitted by a line")),
    ]
    gradient_prompts: Annotated[
        int, Field(ge=200, le=10**6, description="Prompts for the gradients, for each $σ$ and each query size.")
    ]
    taus: Annotated[
        list[Annotated[float, Field(gt=0.0, le=20.0)]],
        Field(max_length=20, description="Sizes $τ$ of single queries for the gradients, at least two of them."),
        AfterValidator(each_once(2, "a curve is drawn through them")),
        AfterValidator(some_moderate),
    ]

    @property
    def dimension_norm(self) -> float:
        """Return H = uσ at which dimensions are compared."""
        return self.gain * self.dimension_scale
