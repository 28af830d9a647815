"""Parameters of the notebook `mixture_denoising`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings of the parameters; the notebook holds the defaults."""

    seed: companion.Seed
    noise_ratios: Annotated[
        list[Annotated[float, Field(ge=1.1, le=5)]],
        Field(
            max_length=6,
            description="Ratios $r$ of the standard deviations of noise and tokens; 1 and every $1/r$ are added.",
        ),
        AfterValidator(each_once(1, "one head is compared at two noise levels")),
    ]
    separations: Annotated[
        list[Annotated[float, Field(ge=0.2, le=4)]],
        Field(
            max_length=40,
            description=(
                "Distances $λ$ of the components at which the denoiser is iterated, in half standard deviations."
            ),
        ),
        AfterValidator(each_once(2, "the two phases are compared")),
    ]
    prompt_lengths: Annotated[
        list[Annotated[int, Field(ge=50, le=100_000)]],
        Field(max_length=8, description="Lengths $L$ of the finite prompts, at least three."),
        AfterValidator(each_once(3, "an exponent is fitted")),
    ]
    tasks: Annotated[
        int, Field(ge=100, le=20_000, description="Number of random tasks, with one prompt of each length.")
    ]
    training_steps: Annotated[int, Field(ge=1000, le=400_000, multiple_of=100, description="Steps of SGD.")]
    training_runs: Annotated[int, Field(ge=3, le=20, description="Number of runs of SGD for one and for two heads.")]
