"""Parameters of the notebook `published_experiment`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook has the defaults."""

    seed: companion.Seed
    covariance_bug: Annotated[bool, Field(description="Draw data as the published code does, with other covariances.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=5, le=10**6)]],
        Field(min_length=1, max_length=40, description="Prompt lengths of the exact optima."),
        AfterValidator(different("each length is computed once")),
    ]
    bayes_lengths: Annotated[
        list[Annotated[int, Field(ge=5, le=10**4)]],
        Field(min_length=1, max_length=40, description="Lengths at which ridge regression is averaged over prompts."),
        AfterValidator(different("each length is computed once")),
    ]
    bayes_prompts: Annotated[
        int, Field(ge=500, le=10**6, multiple_of=20, description="Number of prompts in each of these averages.")
    ]
    sgd_lengths: Annotated[
        list[Annotated[int, Field(ge=5, le=10**4)]],
        Field(min_length=1, max_length=40, description="Prompt lengths at which models are trained here."),
        AfterValidator(different("each length is computed once")),
    ]
    sgd_runs: Annotated[
        int, Field(ge=1, le=16, description="Models trained at each length, from different random starts.")
    ]
    sgd_steps: Annotated[int, Field(ge=500, le=10**6, multiple_of=100, description="Steps of that training.")]
    sgd_step_size: Annotated[float, Field(ge=1e-4, le=0.1, description="Step size of that training.")]
    sgd_batch: Annotated[int, Field(ge=8, le=1024, description="Fresh prompts per step of that training.")]

    @property
    def compared_lengths(self) -> list[int]:
        """Return the lengths at which curves, ridge regression or short runs need the optimum."""
        return sorted({*self.lengths, *self.bayes_lengths, *self.sgd_lengths})
