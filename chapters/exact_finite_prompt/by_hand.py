"""Claims on the numbers of the by-hand cells."""

import numpy as np

from companion import Claims
from lib.finite_prompt import participation
from lib.statistics import standard_error


def participation_of_prompts(squares: np.ndarray) -> Claims:
    """Claim the mean sum of squared weights of prompts of 50 tokens for a query of size 2."""
    claim = Claims("exact-finite-prompt-by-hand", source="derived here", box="two-integrals")
    claim.equal(
        "weights",
        "The mean sum of the squared weights of prompts of 50 tokens for a query of size 2 is $P$.",
        squares.mean(),
        participation(2.0, np.log(50)),
        std_error=standard_error(squares),
        rejects=("all weights are $1/L$", 1 / 50),
    )
    return claim


def participation_as_an_integral(integral: float) -> Claims:
    """Claim the same number, from the integral."""
    claim = Claims("exact-finite-prompt-by-hand", source="derived here", box="two-integrals")
    claim.equal(
        "integral",
        "The integral for $P$ by the trapezoidal rule on fixed nodes agrees with the routine of the library.",
        integral,
        participation(2.0, np.log(50)),
        within=1e-4,
        because="four digits, which the fixed nodes give",
        rejects=("the prompt has 51 tokens", participation(2.0, np.log(51))),
    )
    return claim
