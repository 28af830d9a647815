"""Parameters of the notebook `opposite_heads`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the default values are in the notebook."""

    seed: companion.Seed
    dimension: Annotated[int, Field(ge=2, le=10, description="Dimension $d$ of the covariates.")]
    noise_variance: Annotated[float, Field(ge=0.0, le=1.0, description="Variance of the label noise, $s²$.")]
    curvature_length: Annotated[
        int, Field(ge=10, le=200, description="Prompt length at which the curvature at zero keys is compared.")
    ]
    curve_lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=1000)]],
        Field(min_length=2, max_length=5, description="Prompt lengths of the risk curves."),
        AfterValidator(each_once(2, "the figure shows how the curves approach a limit")),
    ]
    keys: Annotated[int, Field(ge=5, le=40, description="Number of keys on each risk curve.")]
    best_lengths: Annotated[
        list[Annotated[int, Field(ge=10, le=10**9)]],
        Field(min_length=4, max_length=20, description="Prompt lengths at which the best keys are solved."),
        AfterValidator(each_once(4, "the figure shows how the best key approaches a limit")),
    ]
    price_lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=200)]],
        Field(min_length=2, max_length=4, description="Prompt lengths where the cost of the even part is simulated."),
        AfterValidator(each_once(2, "costs at several lengths are compared")),
    ]
    prompts: Annotated[int, Field(ge=1000, le=10**6, description="Simulated prompts per length.")]
