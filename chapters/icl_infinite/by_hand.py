"""Claims on the numbers of the by-hand cells."""

import numpy as np

from companion import Claims
from lib.finite_prompt import participation, score_error


def descent_ends_at_the_limit(gain: float) -> Claims:
    """Claim the gain at the end of a descent in five dimensions from a balanced start with the gain √0.55."""
    claim = Claims("icl-infinite-by-hand")
    claim.equal(
        "limit",
        "Gradient descent on the infinite-prompt risk in five dimensions, $Σ = I$, ends at the gain $b* = 5^{1/4}$.",
        gain,
        5**0.25,
        within=0.01,
        because="a step of $10^{-3}$ changes the invariant $b² - ‖A‖²$, and with it the end, by about its size in all",
        source="[BB26, Thm 5.1]",
        rejects=("the gain stays at its start", 0.55**0.5),
    )
    return claim


def long_prompt_is_answered(prediction: float, task: np.ndarray, query: np.ndarray) -> Claims:
    """Claim that the head (A*, b*) predicts the label of the query from one prompt of a million pairs."""
    claim = Claims("icl-infinite-by-hand")
    size, length = 5**-0.25, np.log(1_000_000)
    tau, along = size * np.linalg.norm(query), (task @ query) ** 2 / (query @ query)
    variance = along * score_error(tau, length) + (task @ task - along) * participation(tau, length)
    claim.equal(
        "prediction",
        "On one prompt of a million pairs in five dimensions the head $(A*, b*)$ predicts the label of the query.",
        prediction,
        task @ query,
        std_error=np.sqrt(variance) / size,
        source="derived here",
        rejects=("the head has the gain 1", prediction * size),
    )
    return claim
