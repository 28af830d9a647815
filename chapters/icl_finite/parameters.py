"""What `icl_finite` can be rerun with."""

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# When the exact flows are first looked at.
EARLIEST = 0.05
# A flow is at its end after this many times its length.
WAITED = 4.0
# ln L of the longest prompts whose flow differs from the infinite one by more than the integrator's error.
LONGEST_GAP = 21.0
# ln L from which on the local exponents of a gap over a ball are compared.
LONG = 20.0
# ln L from which on a gap grows like time for so long that its exponent can be measured.
GROWS = 19.0


def divides_steps(every: int, info) -> int:
    """The last point is then the end of the descent."""
    steps = info.data.get("steps")
    if steps is not None and steps % every:
        raise ValueError(f"needs to divide `steps`, which is {steps}, so that the last point is the end")
    return every


def reaches(least: float, reason: str):
    """A check that the largest is at least so large."""

    def check(values: list[float]) -> list[float]:
        if max(values) < least:
            raise ValueError(f"must reach {least:g}, because {reason}")
        return values

    return check


def three_are_long(log_lengths: list[float]) -> list[float]:
    """The local exponents compared are those of the last three."""
    if sorted(log_lengths)[-3] < LONG:
        raise ValueError(f"needs three values from {LONG:g} on, because local exponents are compared there")
    return log_lengths


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
    horizon: Annotated[float, Field(ge=1e3, le=1e4, description="Until when the exact flows are followed.")]
    gap_times: Annotated[
        list[Annotated[float, Field(ge=0.1, le=50.0)]],
        Field(max_length=6, description="Times at which finite and infinite flow are compared."),
        AfterValidator(each_once(1, "they are compared at some time")),
    ]
    spectrum: Annotated[
        list[Annotated[float, Field(ge=0.2, le=3.0)]],
        Field(min_length=2, max_length=6, description="Eigenvalues of the Σ of the flows from random starts."),
    ]
    starts: Annotated[int, Field(ge=2, le=20, description="Random Θ from which these flows start.")]
    start_log_lengths: Annotated[
        list[Annotated[float, Field(ge=3.0, le=17.0)]],
        Field(max_length=12, description="ln L of their prompts, at least two; the longest at least 13."),
        AfterValidator(each_once(2, "the ends are compared with a law in L")),
        AfterValidator(reaches(13.0, "the law of the valley is compared with the longest")),
    ]
    radii: Annotated[
        list[Annotated[float, Field(ge=0.5, le=3.0)]],
        Field(max_length=6, description="Radii of the balls of heads."),
        AfterValidator(each_once(1, "the corollary speaks of some ball")),
    ]
    block_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=30.0)]],
        Field(max_length=12, description="ln L at which balls of block heads are searched, from at most 5 to 30."),
        AfterValidator(each_once(2, "the longest is compared with the shortest")),
        AfterValidator(reaches(30.0, "a gap is asked to vanish")),
    ]
    all_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(max_length=12, description="ln L at which balls of all heads are searched, at least three, up to 300."),
        AfterValidator(each_once(3, "a local exponent is compared with the next")),
        AfterValidator(reaches(300.0, "a law slower than any power shows only there")),
        AfterValidator(three_are_long),
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

    @model_validator(mode="after")
    def some_gap_grows(self) -> "Parameters":
        """Long enough for its exponent in time to be measured."""
        if not any(GROWS <= ell <= LONGEST_GAP for ell in self.log_lengths):
            raise ValueError(
                f"`log_lengths` needs a value from {GROWS:g} to {LONGEST_GAP:g}, where the growth of the gap in time "
                f"is measured. Got {self.log_lengths}."
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
