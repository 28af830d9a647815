"""What `published_experiment` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import different

# The prompts on which second minima are looked at.
SECOND_LENGTH = 20


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    covariance_bug: Annotated[bool, Field(description="Draw data as the published code does: prompts of another law.")]
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
        int, Field(ge=500, le=10**6, multiple_of=20, description="Prompts that each of these averages is over.")
    ]
    sgd_lengths: Annotated[
        list[Annotated[int, Field(ge=5, le=10**4)]],
        Field(min_length=1, max_length=40, description="Lengths at which a model is trained here."),
        AfterValidator(different("each length is computed once")),
    ]
    sgd_runs: Annotated[int, Field(ge=1, le=16, description="Models trained at each length, of different starts.")]
    sgd_steps: Annotated[int, Field(ge=500, le=10**6, multiple_of=100, description="Steps of that training.")]
    sgd_step_size: Annotated[float, Field(ge=1e-4, le=0.1, description="Step size of that training.")]
    sgd_batch: Annotated[int, Field(ge=8, le=1024, description="Fresh prompts a step.")]
    starts: Annotated[int, Field(ge=8, le=512, description="Random starts of the exact descent of linear attention.")]
    softmax_starts: Annotated[
        int, Field(ge=4, le=512, description="Random starts of the descents of softmax that look for two minima.")
    ]

    @property
    def compared_lengths(self) -> list[int]:
        """Lengths at which a curve, ridge regression, a run made here or a second minimum is held to the optimum."""
        return sorted({*self.lengths, *self.bayes_lengths, *self.sgd_lengths, SECOND_LENGTH})
