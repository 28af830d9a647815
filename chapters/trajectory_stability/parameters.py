"""Parameters of the notebook `trajectory_stability`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# The task whose risk is shown against time.
SHOWN = "signs"


def with_signs(tasks: list[str]) -> list[str]:
    """Return the tasks without repetition; the one whose risk is shown against time must be among them."""
    if SHOWN not in tasks:
        raise ValueError(f"needs {SHOWN!r} among the tasks, because its risk is shown against time")
    return list(dict.fromkeys(tasks))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook has the defaults."""

    seed: companion.Seed
    tasks: Annotated[
        list[Literal["Gaussian", "signs", "uniform", "mixture", "tanh target", "classification"]],
        Field(min_length=1, description="Sub-Gaussian tasks, with signs among them; the control is always added."),
        AfterValidator(with_signs),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**5)]],
        Field(max_length=12, description="Prompt lengths $L$, at least four."),
        AfterValidator(each_once(4, "slopes are fitted with a bend, and one length is left over to judge the fit")),
    ]
    episodes: Annotated[int, Field(ge=8, le=4096, description="Episodes that all trainings share.")]
    steps: Annotated[int, Field(ge=8, le=10**4, description="Steps of gradient descent.")]
    step_size: Annotated[float, Field(gt=0.0, le=0.1, description="Step size; training time is step size times steps.")]
    runs: Annotated[int, Field(ge=3, le=256, description="Independent finite-prompt trainings at each length.")]
    prompts: Annotated[
        int, Field(ge=256, le=10**6, description="New episodes that measure the gradient's error at a checkpoint.")
    ]
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=9)]],
        Field(max_length=8, description="Prompt lengths of the exact flows, as powers of ten."),
        AfterValidator(each_once(2, "the shortest prompts are compared with the longest")),
    ]
    horizon: Annotated[float, Field(ge=20.0, le=500.0, description="Time at which the exact flows end.")]
    lengths_per_group: Annotated[
        int,
        Field(
            ge=1,
            le=12,
            description="Lengths computed together: larger groups need less work in all, smaller ones allow more jobs.",
        ),
    ]
