"""What `icl_infinite` can be rerun with."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Starts Θ and the axes of the ill-conditioned Σ are drawn from it.")]
    dimension: Annotated[int, Field(ge=2, le=20, description="d of the covariates.")]
    condition: Annotated[float, Field(ge=2.0, le=100.0, description="Condition number of the ill-conditioned Σ.")]
    points: Annotated[int, Field(ge=50, le=2000, description="Times at which a flow is recorded.")]
    start_scales: Annotated[
        int, Field(ge=3, le=41, description="Scales α of the starts, from 1/30 to 30 times [ZFB24]'s bound.")
    ]
    task_draws: Annotated[int, Field(ge=50, le=5000, description="Random tasks whose tokens' scale is drawn.")]
    starts: Annotated[int, Field(ge=1, le=20, description="Random Θ at each scale.")]
    decades: Annotated[int, Field(ge=5, le=12, description="Imbalances of sign-wrong starts: 10⁻¹ to 10 to this.")]
