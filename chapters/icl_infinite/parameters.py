"""Parameters of the notebook `icl_infinite`."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: companion.Seed
    dimension: Annotated[int, Field(ge=2, le=20, description="Dimension $d$ of the covariates.")]
    # an explicit solver needs about 8 steps times the cube of it, and `gradient_flow` allows a million
    condition: Annotated[float, Field(ge=2.0, le=30.0, description="Condition number of the ill-conditioned $Σ$.")]
    points: Annotated[int, Field(ge=50, le=2000, description="Number of times at which a flow is recorded.")]
    start_scales: Annotated[
        int,
        Field(
            ge=3, le=41, description="Number of scales $α$ of the starts, from 1/30 to 30 times the bound of [ZFB24]."
        ),
    ]
    task_draws: Annotated[
        int, Field(ge=50, le=5000, description="Number of random tasks in the figure of token scales.")
    ]
    starts: Annotated[int, Field(ge=1, le=20, description="Number of random $Θ$ at each scale.")]
    decades: Annotated[
        int,
        Field(ge=5, le=12, description="Imbalances of starts with the wrong sign: 10⁻¹ to $10^{-\\mathrm{decades}}$."),
    ]
