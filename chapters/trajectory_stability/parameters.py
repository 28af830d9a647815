"""What `trajectory_stability` can be rerun with."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once

# The task whose risk is drawn against time.
SHOWN = "signs"


def with_signs(tasks: list[str]) -> list[str]:
    """Each once, and the one that is drawn against time."""
    if SHOWN not in tasks:
        raise ValueError(f"needs {SHOWN!r} among the tasks, because its risk is drawn against time")
    return list(dict.fromkeys(tasks))


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    tasks: Annotated[
        list[Literal["Gaussian", "signs", "uniform", "mixture", "tanh target", "classification"]],
        Field(min_length=1, description="Sub-Gaussian tasks, signs among them; the control comes with any."),
        AfterValidator(with_signs),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=4, le=10**5)]],
        Field(max_length=12, description="Prompt lengths L, at least four of them."),
        AfterValidator(each_once(4, "slopes are fitted with a bend, and one length is left over to judge the fit")),
    ]
    episodes: Annotated[int, Field(ge=8, le=4096, description="Episodes that all training shares.")]
    steps: Annotated[int, Field(ge=8, le=10**4, description="Steps of gradient descent.")]
    step_size: Annotated[float, Field(gt=0.0, le=0.1, description="Their size: time is step size times steps.")]
    runs: Annotated[int, Field(ge=3, le=256, description="Independent finite-prompt trainings at each length.")]
    prompts: Annotated[
        int, Field(ge=256, le=10**6, description="Fresh episodes that measure the gradient's error at a checkpoint.")
    ]
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=9)]],
        Field(max_length=8, description="Powers of ten: prompt lengths of the exact flows."),
        AfterValidator(each_once(2, "the shortest prompts are compared with the longest")),
    ]
    horizon: Annotated[float, Field(ge=20.0, le=500.0, description="How long the exact flows are followed.")]
    lengths_per_group: Annotated[
        int,
        Field(
            ge=1,
            le=12,
            description="Lengths computed together: more need less work in all, fewer allow more jobs at once.",
        ),
    ]
