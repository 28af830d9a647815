"""Parameters of the notebook `single_location_training`."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: Annotated[companion.Seed, Field(description="Seed of all random numbers.")]
    dimension: Annotated[int, Field(ge=100, le=5000, description="Dimension d of a token.")]
    length: Annotated[int, Field(ge=2, le=50, description="Number of tokens in a prompt, L.")]
    variance: Annotated[float, Field(ge=0.1, le=1.0, description="Variance γ² of the relevant token.")]
    repeats: Annotated[int, Field(ge=8, le=200, description="Number of random starts of each kind.")]
    erf_steps: Annotated[int, Field(ge=6000, le=10**5, description="Number of descent steps of erf attention.")]
    softmax_steps: Annotated[int, Field(ge=1200, le=10**5, description="Number of descent steps of softmax attention.")]
    erf_step: Annotated[
        float,
        Field(ge=1e-4, le=1.5e-3, description="Step size of erf attention; training is unstable from about 0.002 on."),
    ]
    softmax_step: Annotated[float, Field(ge=1e-4, le=3e-3, description="Step size of softmax attention.")]
    test_prompts: Annotated[
        int, Field(ge=1000, le=10**5, description="Number of simulated prompts that check the closed form.")
    ]
