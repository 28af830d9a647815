"""What `single_location_training` can be rerun with."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[companion.Seed, Field(description="Starts and test prompts are drawn from it.")]
    dimension: Annotated[int, Field(ge=100, le=5000, description="Dimension d of a token.")]
    length: Annotated[int, Field(ge=2, le=50, description="Tokens in a prompt, L.")]
    variance: Annotated[float, Field(ge=0.1, le=1.0, description="Variance γ² of the token that carries the answer.")]
    repeats: Annotated[int, Field(ge=8, le=200, description="Random starts of each kind.")]
    erf_steps: Annotated[int, Field(ge=6000, le=10**5, description="Descent steps of erf-attention.")]
    softmax_steps: Annotated[int, Field(ge=1200, le=10**5, description="Descent steps of softmax attention.")]
    erf_step: Annotated[
        float,
        Field(ge=1e-4, le=1.5e-3, description="Size of a step of erf-attention; from about 0.002 on it is unstable."),
    ]
    softmax_step: Annotated[float, Field(ge=1e-4, le=3e-3, description="Size of a step of softmax attention.")]
    test_prompts: Annotated[int, Field(ge=1000, le=10**5, description="Real prompts that check the closed form.")]
