"""Parameters of the notebook `mixtures`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings of the parameters; the notebook holds the defaults."""

    seed: companion.Seed
    gate_length: Annotated[
        int, Field(ge=200, le=100_000, description="Length $L$ of the finite prompts of labelled tokens.")
    ]
    gate_prompts: Annotated[int, Field(ge=200, le=100_000, description="Number of these prompts per query.")]
    flow_starts: Annotated[
        int, Field(ge=1, le=10, description="Starts of the gradient flow at distance 0.1 from each minimiser.")
    ]
    classifier_steps: Annotated[
        int, Field(ge=800, le=200_000, multiple_of=20, description="Steps of SGD for two classes.")
    ]
    classifier_runs: Annotated[int, Field(ge=2, le=20, description="Number of these runs for each kind of start.")]
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
        Field(max_length=8, description="Lengths $L$ of the finite prompts of noisy tokens, at least three."),
        AfterValidator(each_once(3, "an exponent is fitted")),
    ]
    tasks: Annotated[
        int, Field(ge=100, le=20_000, description="Number of random tasks, with one prompt of each length.")
    ]
    denoiser_steps: Annotated[
        int, Field(ge=1000, le=400_000, multiple_of=100, description="Steps of SGD for denoising.")
    ]
    denoiser_runs: Annotated[int, Field(ge=3, le=20, description="Number of these runs for one and for two heads.")]
