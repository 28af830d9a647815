"""Parameters of the notebook `preconditioned_training`."""

from typing import Annotated

from pydantic import AfterValidator, Field

import companion
from companion.project.parameters import each_once


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the default values are in the notebook."""

    seed: companion.Seed
    dimension: Annotated[int, Field(ge=2, le=6, description="Dimension $d$ of tokens in the flows and rates.")]
    conditions: Annotated[
        list[Annotated[float, Field(ge=1.0, le=100.0)]],
        Field(min_length=2, max_length=4, description="Condition numbers of $Σ$, with the largest eigenvalue 1."),
        AfterValidator(each_once(2, "the figure compares condition numbers")),
    ]
    start: Annotated[
        float, Field(ge=1e-4, le=0.2, description="Share of the target matrix that is learnt at the start of a flow.")
    ]
    points: Annotated[int, Field(ge=8, le=60, description="Times at which an integrated flow is recorded.")]
    rate_points: Annotated[int, Field(ge=4, le=60, description="Condition numbers at which rates are computed.")]
    log_lengths: Annotated[
        list[Annotated[float, Field(ge=5.0, le=330.0)]],
        Field(min_length=3, max_length=30, description="$ln L$ of finite prompts; 40 and 300 are added."),
        AfterValidator(each_once(3, "the figure draws curves through them")),
    ]
    factor: Annotated[
        float,
        Field(ge=0.05, le=0.4, description="$c²$, by which the head is rescaled: the values $V/c$, the scores $cU$."),
    ]
    error_dimension: Annotated[
        int, Field(ge=2, le=10, description="Dimension $d$ of tokens in the figure on the best factor.")
    ]
    factors: Annotated[int, Field(ge=8, le=200, description="Factors $c²$ in this figure.")]
