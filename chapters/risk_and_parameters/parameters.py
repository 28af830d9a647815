"""Parameters of the notebook `risk_and_parameters`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once


def reach_small_keys(tilts: list[float]) -> list[float]:
    """Require one u so small that a pair of opposite heads reaches the risk of linear attention."""
    if min(tilts) > 0.1:
        raise ValueError("must reach 0.1, where two heads are compared with linear attention")
    return tilts


class Parameters(companion.Parameters):
    """Types, ranges and meanings of the parameters; the notebook holds the defaults."""

    seed: Annotated[companion.Seed, Field(description="Seed of all random draws.")]
    alpha: Annotated[
        float, Field(ge=0.2, le=0.94, description="Scale of the balanced start, $A(0) = αI/√d$, $b(0) = α$.")
    ]
    flow_lengths: Annotated[
        list[Annotated[int, Field(ge=50, le=10**9)]],
        Field(max_length=6, description="Prompt lengths of the gradient flows, at least two."),
        AfterValidator(each_once(2, "the longest prompt is compared with the shortest")),
    ]
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=100)]],
        Field(max_length=8, description="Dimensions $d$ in which the head of least risk is searched."),
        AfterValidator(each_once(1, "the best head is searched in at least one dimension")),
    ]
    price_lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**9)]],
        Field(max_length=4, description="Prompt lengths at which the head of least risk is searched; 10⁸ is added."),
        AfterValidator(each_once(1, "the limit is compared with a shorter prompt")),
    ]
    heads_length: Annotated[int, Field(ge=50, le=2000, description="Length of the simulated prompts.")]
    tilts: Annotated[
        list[Annotated[float, Field(ge=0.02, le=0.6)]],
        Field(max_length=12, description="Values of $u$ of the simulated heads $A = uI$; the smallest at most 0.1."),
        AfterValidator(each_once(2, "the theoretical curves go from the smallest to the largest")),
        AfterValidator(reach_small_keys),
    ]
    prompts: Annotated[int, Field(ge=2000, le=10**7, description="Number of simulated prompts.")]
    line_lengths: Annotated[
        list[Annotated[int, Field(ge=5, le=10**6)]],
        Field(max_length=6, description="Prompt lengths at which all heads for $d = 1$ are searched."),
        AfterValidator(each_once(2, "the curve goes from the shortest to the longest")),
    ]
    searches: Annotated[int, Field(ge=4, le=100, description="Random starts of the search at each of these lengths.")]
    noises: Annotated[
        list[Annotated[float, Field(ge=0.01, le=100.0)]],
        Field(max_length=8, description="Variances of the label noise."),
        AfterValidator(each_once(2, "the theoretical curve goes from the smallest to the largest")),
    ]
