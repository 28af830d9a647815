"""Claims on the numbers of the by-hand cells."""

import numpy as np

from companion import Claims
from lib.statistics import comparison_quantile, standard_error

BIAS = (
    "99.9 % quantile of one standard normal deviation, times the standard error, and two over the length for the "
    "bias of a finite prompt"
)


def forgets_order(same: float, repeated: float) -> Claims:
    """Claim that a shuffled and doubled prompt has the output of the prompt; `repeated` has one token more."""
    claim = Claims("measures-by-hand", source="derived here")
    claim.at_most(
        "order",
        "A prompt that is shuffled and written twice has the output of the prompt (measured: the distance of the "
        "outputs).",
        same,
        0,
        within=1e-13,
        because="rounding errors of two sums of 400 terms",
        rejects=("one of the tokens is written twice", repeated),
    )
    return claim


def tilts_signs(tilted_means: np.ndarray) -> Claims:
    """Claim the mean output of prompts of random signs with the tilt 1.5."""
    claim = Claims("measures-by-hand", source="derived here")
    error = standard_error(tilted_means)
    claim.equal(
        "tilt",
        "Prompts of 2,000 random signs with the tilt 1.5 have the mean output $tanh 1.5$ of the infinite prompt.",
        np.mean(tilted_means),
        np.tanh(1.5),
        within=comparison_quantile(1) * error + 2 / 2000,
        because=BIAS,
        std_error=error,
        rejects=("the tilted mean of uniform tokens of the same variance", 3**0.5 / np.tanh(3**0.5 * 1.5) - 1 / 1.5),
    )
    return claim
