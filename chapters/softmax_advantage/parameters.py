"""Parameters of the notebook `softmax_advantage`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# Heads and signal strength ν of the prompt that is shown token by token.
SHOWN_HEADS, SHOWN_SNR = ("softmax", "linear"), 9.0


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults are in the notebook."""

    seed: Annotated[companion.Seed, Field(description="Seed of the simulated prompts.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**8)]],
        Field(min_length=1, max_length=5, description="Prompt lengths $L$."),
        AfterValidator(different("each is a curve")),
    ]
    snrs: Annotated[int, Field(ge=5, le=100, description="Number of signal strengths $ν$ from 0.1 to 60.")]
    zoo_length: Annotated[int, Field(ge=3, le=1000, description="Prompt length at which activations are compared.")]
    zoo_snr: Annotated[
        float, Field(ge=2.0, le=20.0, description="Signal strength $ν$ at which activations are compared.")
    ]
    prompts: Annotated[
        int,
        Field(
            ge=10**4,
            le=10**7,
            description="Number of simulated prompts from which the angle between weights and posterior is measured.",
        ),
    ]
