"""Parameters of the notebook `several_relevant_tokens`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# The prompt length and the strengths of the figures on one length.
LENGTH, LARGEST_SNR, SHOWN_SNR = 100, 24.0, 15.0


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults are in the notebook."""

    seed: Annotated[companion.Seed, Field(description="Seed of the simulated prompts and of the training.")]
    numbers: Annotated[
        list[Annotated[int, Field(ge=2, le=50)]],
        Field(min_length=1, max_length=3, description="Numbers $r ≥ 2$ of relevant tokens, next to one."),
        AfterValidator(different("each is a panel")),
    ]
    points: Annotated[int, Field(ge=5, le=60, description="Number of signal strengths $ν$ of the curves.")]
    prompts: Annotated[int, Field(ge=1000, le=10_000_000, description="Prompts of each simulated Bayes risk.")]
    log_lengths: Annotated[
        list[Annotated[float, Field(ge=4, le=300)]],
        Field(min_length=2, max_length=6, description="Logarithms $ln L$ of growing prompts."),
        AfterValidator(different("each is a curve")),
    ]
    training: Annotated[int, Field(ge=1500, le=20_000, description="Prompts on which heads are trained.")]
