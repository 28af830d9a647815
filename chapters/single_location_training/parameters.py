"""Parameters of the notebook `single_location_training`."""

from typing import Annotated

from pydantic import Field, model_validator

import companion

# Largest products of step size and dimension for which training is stable: the curvature of the risk along the key
# grows in proportion to the dimension.
STABLE = {"erf_step": 0.6, "softmax_step": 1.2}
# Largest products of step size and d/γ² for which it is stable: if the weight of the hidden token is near 1, the risk
# contains (d/2) ⟨v, k*⟩²/γ², whose curvature is d/γ², and a step must be below 2 divided by that. The erf is unstable
# earlier.
STABLE_VALUE = {"erf_step": 1.2, "softmax_step": 1.8}
# Largest erf_step (L - 1)(L - 2)/γ² for which it is stable. Erf weights do not sum to 1, so that the outputs of other
# tokens add up if k and v are not orthogonal: the risk contains b² (L - 1)(L - 2)/γ², b = 0.63 ⟨k, v⟩ at λ = 0.9. Its
# curvature in ⟨k, v⟩, 0.79 (L - 1)(L - 2)/γ², acts on both vectors, and a step must be below 2 divided by twice that.
STABLE_SUM = 1.2


class Parameters(companion.Parameters):
    """Types, ranges and meanings; the notebook contains the defaults."""

    seed: Annotated[companion.Seed, Field(description="Seed of all random numbers.")]
    dimension: Annotated[int, Field(ge=100, le=5000, description="Dimension $d$ of a token.")]
    length: Annotated[int, Field(ge=2, le=50, description="Number of tokens in a prompt, $L$.")]
    variance: Annotated[float, Field(ge=0.1, le=1.0, description="Variance $γ²$ of the relevant token.")]
    repeats: Annotated[int, Field(ge=8, le=200, description="Number of random starts of each kind.")]
    erf_steps: Annotated[int, Field(ge=6000, le=10**5, description="Number of descent steps of erf attention.")]
    softmax_steps: Annotated[int, Field(ge=1200, le=10**5, description="Number of descent steps of softmax attention.")]
    erf_step: Annotated[
        float,
        Field(ge=1e-4, le=1.5e-3, description="Step size of erf attention; training is unstable from about 0.002 on."),
    ]
    softmax_step: Annotated[float, Field(ge=1e-4, le=3e-3, description="Step size of softmax attention.")]
    test_prompts: Annotated[
        int, Field(ge=1000, le=10**5, description="Number of simulated prompts that check the closed form.")
    ]

    @model_validator(mode="after")
    def training_is_stable(self) -> "Parameters":
        """Check that the steps are not too long for the dimension."""
        limits = {name: min(most, STABLE_VALUE[name] * self.variance) / self.dimension for name, most in STABLE.items()}
        if self.length > 2:
            pairs = (self.length - 1) * (self.length - 2)
            limits["erf_step"] = min(limits["erf_step"], STABLE_SUM * self.variance / pairs)
        for name, most in limits.items():
            if getattr(self, name) > most * (1 + 1e-9):
                raise ValueError(
                    f"`{name}` must be at most {most:.3g} for these values of `dimension`, `length` and `variance`, "
                    f"because training with longer steps is unstable. Got {getattr(self, name):g}"
                )
        return self
