"""Parameters of the notebook `worth_of_heads`."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the default values are in the notebook."""

    seed: companion.Seed
    dimension: Annotated[int, Field(ge=1, le=10, description="Dimension $d$ of the covariates of the single task.")]
    noise_variance: Annotated[float, Field(ge=0.0, le=5.0, description="Variance of the label noise, $s²$.")]
    random_heads: Annotated[int, Field(ge=20, le=10**4, description="Random sets of heads compared with the bound.")]
    tasks: Annotated[int, Field(ge=2, le=5, description="Number I of disjoint tasks on the staircase.")]
    task_dimension: Annotated[int, Field(ge=1, le=5, description="Dimension $δ$ of each of these tasks.")]
    searches: Annotated[int, Field(ge=3, le=50, description="Random starts of the search for the best heads.")]
    covariates: Annotated[int, Field(ge=20, le=100, description="Total dimension $D$ of the covariates of all tasks.")]
    task_counts: Annotated[
        list[Annotated[int, Field(ge=2, le=100)]],
        Field(min_length=2, max_length=5, description="Numbers of tasks that share these covariates equally."),
        AfterValidator(each_once(2, "the figure shows how the separation grows with the number of tasks")),
    ]
    length: Annotated[int, Field(ge=50, le=1000, description="Prompt length $L$ of the exact separation.")]
    prompts: Annotated[int, Field(ge=500, le=10**5, description="Simulated prompts.")]
    steps: Annotated[int, Field(ge=1000, le=20000, description="Steps of the training.")]

    @model_validator(mode="after")
    def tasks_share_the_covariates(self) -> "Parameters":
        """Check that each number of tasks divides the number of covariates."""
        if odd := [count for count in self.task_counts if self.covariates % count]:
            raise ValueError(f"each of `task_counts` must divide `covariates`, {self.covariates}; {odd[0]} does not")
        return self
