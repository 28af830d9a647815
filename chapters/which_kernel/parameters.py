"""Parameters of the notebook `which_kernel`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the default values are in the notebook."""

    seed: companion.Seed
    dimension: Annotated[int, Field(ge=2, le=8, description="Dimension $d$ of the covariates.")]
    noise_variance: Annotated[float, Field(ge=0.0, le=1.0, description="Variance of the label noise, $s²$.")]
    length: Annotated[int, Field(ge=20, le=400, description="Prompt length of the risk curves and of both tasks.")]
    keys: Annotated[int, Field(ge=8, le=60, description="Number of keys on each risk curve.")]
    gain_lengths: Annotated[
        list[Annotated[int, Field(ge=20, le=10000)]],
        Field(min_length=2, max_length=8, description="Prompt lengths at which the best pairs are solved."),
        AfterValidator(each_once(2, "the figure shows how the gain approaches a limit")),
    ]
    large_noise_variance: Annotated[
        float, Field(ge=1.0, le=10.0, description="Variance of the label noise at which linear attention wins.")
    ]
    snr: Annotated[float, Field(ge=4.0, le=60.0, description="Signal strength $ν$ of the hidden token.")]
    cut_lengths: Annotated[
        list[Annotated[int, Field(ge=3, le=200)]],
        Field(min_length=2, max_length=4, description="Prompt lengths at which the kernel $1 + x$ is studied."),
        AfterValidator(each_once(2, "errors at several lengths are compared")),
    ]
    cut_key: Annotated[float, Field(ge=0.2, le=0.6, description="Key $ω$ of the heads with the kernel $1 + x$.")]
    decades: Annotated[int, Field(ge=6, le=20, description="Logarithm to base ten of the largest number of prompts.")]
    prompts: Annotated[
        int, Field(ge=9000, le=10**6, description="Simulated prompts per length with the kernel $1 + x$.")
    ]
    centred_prompts: Annotated[int, Field(ge=2000, le=10**6, description="Simulated prompts with a centred head.")]

    @model_validator(mode="after")
    def linear_attention_wins_with_noise(self) -> "Parameters":
        """Check that the large noise is beyond the limit from which linear attention wins on long prompts."""
        least = 1 + 3 / self.dimension
        if self.large_noise_variance <= least:
            raise ValueError(
                f"`large_noise_variance` must be above 1 + 3/`dimension` = {least:.3g}, because linear attention wins "
                f"only beyond. Got {self.large_noise_variance:g}"
            )
        return self
