"""What `icl_finite` can be rerun with."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

import companion


def divides_steps(every: int, info: ValidationInfo) -> int:
    """The last point is then the end of the descent."""
    steps = info.data.get("steps")
    if steps is not None and steps % every:
        raise ValueError(f"needs to divide `steps`, which is {steps}, so that the last point is the end")
    return every


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="All prompts of the stochastic descents are drawn from it.")]
    dimension: Annotated[int, Field(ge=1, le=10, description="d of the covariates, whose covariance is I.")]
    alpha: Annotated[float, Field(gt=0.0, le=2.0, description="Scale of the balanced start, ‖A‖ = b = α.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**5)]],
        Field(min_length=2, max_length=10, description="Lengths at which stochastic descent is run."),
    ]
    plain_lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**4)]],
        Field(max_length=10, description="Lengths at which it is run on plainly drawn prompts too."),
    ]
    step: Annotated[float, Field(gt=0.0, le=0.05, description="Step of the descents.")]
    steps: Annotated[int, Field(ge=50, le=10**6, description="Number of steps.")]
    every: Annotated[
        int,
        Field(ge=5, le=10**5, description="Steps averaged to one point; divides their number."),
        AfterValidator(divides_steps),
    ]
    seeds: Annotated[int, Field(ge=8, le=1000, description="Independent runs at each length.")]
    tokens: Annotated[int, Field(ge=10**4, le=10**9, description="Tokens a step, over all seeds.")]
    log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=60.0)]],
        Field(min_length=3, max_length=40, description="ln L of longer prompts, for the exact theory only."),
    ]
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=50)]],
        Field(min_length=1, max_length=6, description="Dimensions of the curves L(ε); 1 and `dimension` are added."),
    ]
    horizon: Annotated[float, Field(ge=100.0, le=1e4, description="Until when the exact flows are followed.")]
    gap_times: Annotated[
        list[Annotated[float, Field(ge=0.1, le=50.0)]],
        Field(min_length=1, max_length=6, description="Times at which finite and infinite flow are compared."),
    ]

    @property
    def descents(self) -> list[tuple[str, int]]:
        """The stochastic descents: how each draws its prompts, and how long these are."""
        return [("collapsed", length) for length in self.lengths] + [("plain", length) for length in self.plain_lengths]

    @property
    def price_dimensions(self) -> list[int]:
        """The dimensions of the curves L(ε), in order."""
        return sorted({1, self.dimension, *self.dimensions})
