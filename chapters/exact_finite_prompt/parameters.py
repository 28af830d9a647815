"""What `exact_finite_prompt` can be rerun with."""

from typing import Annotated

from pydantic import Field

import companion


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the defaults stand in the notebook."""

    seed: Annotated[int, Field(ge=0, description="Everything random is drawn from it.")]
    plane_taus: Annotated[int, Field(ge=6, le=200, description="Query sizes across the plane, from 0 to 12.")]
    plane_lengths: Annotated[int, Field(ge=6, le=200, description="Lengths up the plane, from ln L = 0 to 80.")]
    decades: Annotated[
        list[Annotated[int, Field(ge=1, le=140)]],
        Field(min_length=2, max_length=8, description="Lengths of the mean answers, as powers of ten."),
    ]
    freezing_log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=330.0)]],
        Field(min_length=2, max_length=8, description="ln L of the freezing curves."),
    ]
    taus: Annotated[
        list[Annotated[float, Field(ge=0.0, le=8.0)]],
        Field(min_length=2, max_length=6, description="Query sizes of the error curves."),
    ]
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**5)]],
        Field(min_length=2, max_length=12, description="Lengths at which prompts are simulated."),
    ]
    tokens: Annotated[int, Field(ge=10**5, le=10**10, description="Tokens drawn at one length and query size.")]
    prompts: Annotated[int, Field(ge=500, le=10**6, description="Most prompts drawn at one length and query size.")]
    collapsed_length: Annotated[int, Field(ge=2, le=10**5, description="Length of the prompts of the two samplers.")]
    collapsed_prompts: Annotated[int, Field(ge=500, le=10**5, description="Prompts of each of the two samplers.")]

    @property
    def counts(self) -> dict[int, int]:
        """How many prompts are simulated of each length: as many as the budget of tokens allows."""
        return {length: min(self.prompts, -(-self.tokens // length)) for length in sorted(set(self.lengths))}
