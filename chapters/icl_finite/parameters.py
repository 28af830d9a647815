"""What `icl_finite` can be rerun with."""

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.parameters import each_once

# When the exact flows are first looked at.
EARLIEST = 0.05
# A flow is at its end after this many times its length.
WAITED = 4.0
# ln L of the longest prompts whose flow differs from the infinite one by more than the integrator's error.
LONGEST_GAP = 21.0


def divides_steps(every: int, info) -> int:
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
        Field(max_length=10, description="Lengths at which stochastic descent is run, at least two of them."),
        AfterValidator(each_once(2, "the gap between finite and infinite flow is compared at two lengths")),
    ]
    plain_lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**4)]],
        Field(max_length=10, description="Lengths at which it is run on plainly drawn prompts too."),
        AfterValidator(each_once(0, "there may be none")),
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
        Field(max_length=40, description="ln L of longer prompts, for the exact theory only; at least three."),
        AfterValidator(each_once(3, "an exponent is measured at the longest")),
    ]
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=50)]],
        Field(min_length=1, max_length=6, description="Dimensions of the curves L(ε); 1 and `dimension` are added."),
    ]
    horizon: Annotated[float, Field(ge=100.0, le=1e4, description="Until when the exact flows are followed.")]
    gap_times: Annotated[
        list[Annotated[float, Field(ge=0.1, le=50.0)]],
        Field(max_length=6, description="Times at which finite and infinite flow are compared."),
        AfterValidator(each_once(1, "they are compared at some time")),
    ]

    @model_validator(mode="after")
    def descents_end_within_the_flows(self) -> "Parameters":
        """Or the risk of a flow where the descents stopped would be that at another time."""
        stop = self.step * (self.steps - (self.every + 1) / 2)
        if not EARLIEST <= stop <= self.horizon:
            raise ValueError(
                f"the descents' last point is at time {stop:g}, by `step`, `steps` and `every`, but the flows are "
                f"followed from {EARLIEST:g} to `horizon` = {self.horizon:g}"
            )
        return self

    @model_validator(mode="after")
    def some_flow_ends(self) -> "Parameters":
        """Its last risk is compared with the least one."""
        shortest = min(*self.lengths, *map(math.exp, self.log_lengths))
        if WAITED * shortest > self.horizon:
            raise ValueError(
                f"no flow ends: the shortest prompt has {shortest:.0f} tokens and needs a `horizon` of {WAITED:g} "
                f"times that, but `horizon` is {self.horizon:g}"
            )
        return self

    @property
    def descents(self) -> list[tuple[str, int]]:
        """The stochastic descents: how each draws its prompts, and how long these are."""
        return [("collapsed", length) for length in self.lengths] + [("plain", length) for length in self.plain_lengths]

    @property
    def price_dimensions(self) -> list[int]:
        """The dimensions of the curves L(ε), in order."""
        return sorted({1, self.dimension, *self.dimensions})
