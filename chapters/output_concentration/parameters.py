"""What `output_concentration` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion


def increasing(numbers: list) -> list:
    """Each once, in order."""
    return sorted(set(numbers))


def at_least_four(lengths: list[int]) -> list[int]:
    """Three to fit the error of a token law, and one left over to tell whether the curve fits."""
    if len(set(lengths)) < 4:
        raise ValueError("needs four different lengths: three coefficients are fitted to the errors of each token law")
    return increasing(lengths)


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    gain: Annotated[float, Field(ge=0.4, le=0.6, description="u of U = uI; V = I.")]
    scales: Annotated[
        list[Annotated[float, Field(ge=1.0, le=4.0)]],
        Field(min_length=2, max_length=6, description="Token scales σ, at least two of them."),
        AfterValidator(increasing),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(min_length=4, max_length=12, description="Prompt lengths L that are simulated."),
        AfterValidator(at_least_four),
    ]
    prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts for each σ and each token law.")]
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=16)]],
        Field(min_length=2, max_length=6, description="Dimensions that are compared."),
        AfterValidator(increasing),
    ]
    dimension_scale: Annotated[float, Field(ge=1.0, le=1.6, description="σ at which dimensions are compared.")]
    dimension_lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**6)]],
        Field(min_length=1, max_length=8, description="Prompt lengths simulated in each dimension."),
        AfterValidator(increasing),
    ]
    dimension_prompts: Annotated[int, Field(ge=200, le=10**6, description="Prompts in each dimension.")]
    law_scale: Annotated[float, Field(ge=1.8, le=3.0, description="σ at which four token laws are compared.")]
    truncation: Annotated[float, Field(ge=0.2, le=1.0, description="κ of the truncation M = L^κ of the proof.")]
    partition_length: Annotated[int, Field(ge=16, le=10**5, description="L of the partition functions.")]
    partition_prompts: Annotated[int, Field(ge=500, le=10**6, description="Partition functions drawn.")]

    @property
    def dimension_norm(self) -> float:
        """H = uσ at which dimensions are compared."""
        return self.gain * self.dimension_scale
