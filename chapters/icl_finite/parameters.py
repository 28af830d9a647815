"""Parameters of the notebook `icl_finite`."""

import math
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

import companion
from companion.project.parameters import each_once

# Earliest recorded time of the exact flows.
EARLIEST = 0.05
# A flow has reached its end at this multiple of its length.
WAITED = 4.0
# Shortest prompts of the descents: with fewer tokens the best head is very large, in the limit it outputs the nearest
# token, and the flow is not at its end after `WAITED` times the length.
SHORTEST = 8
# ln L of the longest prompts whose flow differs from the infinite one by more than the integrator's error.
LONGEST_GAP = 21.0
# Smallest ln L at which local exponents of a gap over a ball are compared.
LONG = 20.0
# Smallest ln L at which a gap grows like time for long enough to measure its exponent.
GROWS = 19.0


def divides_steps(every: int, info) -> int:
    """Check that `every` divides `steps`, so that the last point is the end of the descent."""
    steps = info.data.get("steps")
    if steps is not None and steps % every:
        raise ValueError(f"needs to divide `steps`, which is {steps}, so that the last point is the end")
    return every


def reaches(least: float, reason: str):
    """Return a check that the largest value is at least `least`."""

    def check(values: list[float]) -> list[float]:
        if max(values) < least:
            raise ValueError(f"must reach {least:g}, because {reason}")
        return values

    return check


def three_are_long(log_lengths: list[float]) -> list[float]:
    """Check that the last three lengths, at which local exponents are compared, are long."""
    if sorted(log_lengths)[-3] < LONG:
        raise ValueError(f"needs three values from {LONG:g} on, because local exponents are compared there")
    return log_lengths


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    dimension: Annotated[int, Field(ge=1, le=10, description="Dimension $d$ of the covariates, with covariance I.")]
    alpha: Annotated[float, Field(gt=0.0, le=2.0, description="Scale of the balanced start, $‖A‖ = b = α$.")]
    lengths: Annotated[
        list[Annotated[int, Field(ge=SHORTEST, le=10**5)]],
        Field(max_length=10, description="Prompt lengths of the stochastic descents, at least two."),
        AfterValidator(each_once(2, "the figures compare at least two lengths")),
    ]
    plain_lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**4)]],
        Field(max_length=10, description="Prompt lengths of further descents whose prompts are drawn token by token."),
        AfterValidator(each_once(0, "an empty list is allowed")),
    ]
    step: Annotated[float, Field(gt=0.0, le=0.05, description="Step size of the descents.")]
    steps: Annotated[int, Field(ge=50, le=10**6, description="Number of steps.")]
    every: Annotated[
        int,
        Field(ge=5, le=10**5, description="Number of steps averaged to one point; divides `steps`."),
        AfterValidator(divides_steps),
    ]
    seeds: Annotated[int, Field(ge=8, le=1000, description="Number of independent runs at each length.")]
    tokens: Annotated[int, Field(ge=10**4, le=10**9, description="Number of tokens per step, over all seeds.")]
    log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=60.0)]],
        Field(max_length=40, description="$ln L$ of longer prompts, for the exact theory only; at least three."),
        AfterValidator(each_once(3, "the longest ones measure an exponent")),
    ]
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=50)]],
        Field(min_length=1, max_length=6, description="Dimensions of the curves $L(ε)$; 1 and `dimension` are added."),
    ]
    horizon: Annotated[float, Field(ge=1e3, le=1e4, description="Last time of the exact flows.")]
    gap_times: Annotated[
        list[Annotated[float, Field(ge=0.1, le=50.0)]],
        Field(max_length=6, description="Times at which finite and infinite flow are compared."),
        AfterValidator(each_once(1, "the figure needs a time at which flows are compared")),
    ]
    spectrum: Annotated[
        list[Annotated[float, Field(ge=0.2, le=3.0)]],
        Field(min_length=2, max_length=6, description="Eigenvalues of the $Σ$ of the flows from random starts."),
    ]
    starts: Annotated[int, Field(ge=2, le=20, description="Number of random $Θ$ from which these flows start.")]
    start_log_lengths: Annotated[
        list[Annotated[float, Field(ge=3.0, le=17.0)]],
        Field(max_length=12, description="$ln L$ of their prompts, at least two; the longest at least 13."),
        AfterValidator(each_once(2, "the figure compares the ends with a formula in L")),
        AfterValidator(reaches(13.0, "the formula C/(2L) is compared at the longest prompts")),
    ]
    radii: Annotated[
        list[Annotated[float, Field(ge=0.5, le=3.0)]],
        Field(max_length=6, description="Radii of the balls of heads."),
        AfterValidator(each_once(1, "the figure needs a ball")),
    ]
    block_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=30.0)]],
        Field(max_length=12, description="$ln L$ at which balls of block heads are searched, from at most 5 to 30."),
        AfterValidator(each_once(2, "the claim compares the longest with the shortest")),
        AfterValidator(reaches(30.0, "the claim tests that the gap vanishes")),
    ]
    all_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(max_length=12, description="$ln L$ at which balls of all heads are searched, at least three, up to 300."),
        AfterValidator(each_once(3, "the claim compares two local exponents")),
        AfterValidator(reaches(300.0, "a decay slower than any power is visible only there")),
        AfterValidator(three_are_long),
    ]

    @model_validator(mode="after")
    def descents_end_within_the_flows(self) -> "Parameters":
        """Check that the flows cover the last time of the descents, where their risks are compared."""
        stop = self.step * (self.steps - (self.every + 1) / 2)
        if not EARLIEST <= stop <= self.horizon:
            raise ValueError(
                f"`step`, `steps` and `every` put the last point of the descents at time {stop:g}, but the flows are "
                f"followed from {EARLIEST:g} to `horizon` = {self.horizon:g}"
            )
        return self

    @model_validator(mode="after")
    def some_flow_ends(self) -> "Parameters":
        """Check that the shortest prompt reaches its end, where its risk is compared with the least risk."""
        shortest = min(*self.lengths, *map(math.exp, self.log_lengths))
        if WAITED * shortest > self.horizon:
            raise ValueError(
                f"no flow ends: the shortest prompt has {shortest:.0f} tokens and needs a `horizon` of {WAITED:g} "
                f"times that, but `horizon` is {self.horizon:g}"
            )
        return self

    @model_validator(mode="after")
    def some_gap_grows(self) -> "Parameters":
        """Check that one length is long enough to measure the growth of the gap in time."""
        if not any(GROWS <= ell <= LONGEST_GAP for ell in self.log_lengths):
            raise ValueError(
                f"`log_lengths` needs a value from {GROWS:g} to {LONGEST_GAP:g}, where the growth of the gap in time "
                f"is measured. Got {self.log_lengths}."
            )
        return self

    @property
    def descents(self) -> list[tuple[str, int]]:
        """Return the stochastic descents as pairs of the way to draw prompts and the prompt length."""
        return [("collapsed", length) for length in self.lengths] + [("plain", length) for length in self.plain_lengths]

    @property
    def price_dimensions(self) -> list[int]:
        """Return the dimensions of the curves L(ε) in increasing order."""
        return sorted({1, self.dimension, *self.dimensions})
