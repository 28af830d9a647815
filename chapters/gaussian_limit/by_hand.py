"""Claims on the numbers of the by-hand cells."""

from collections.abc import Sequence

import numpy as np

from companion import Claims
from lib.finite_prompt import participation
from lib.statistics import comparison_quantile, standard_error

BIAS = (
    "99.9 % quantile of one standard normal deviation, times the standard error, and two over the length for the "
    "bias of a finite prompt"
)


def follows_the_line(slopes: Sequence[float]) -> Claims:
    """Claim the mean slope of prompts of 1,000 standard normal tokens for a query of size 2."""
    claim = Claims("gaussian-limit-by-hand", source="derived here")
    claim.equal(
        "line",
        "The mean output of prompts of 1,000 Gaussian tokens, divided by the size 2 of the query, is $1 - P$.",
        np.mean(slopes),
        1 - participation(2.0, np.log(1000)),
        std_error=standard_error(np.asarray(slopes)),
        rejects=("the output is that of the infinite prompt", 1),
    )
    return claim


def bends_for_uniform_tokens(slopes: np.ndarray) -> Claims:
    """Claim the mean slope of prompts of 4,000 uniform tokens at the tilt 2."""
    claim = Claims("gaussian-limit-by-hand", source="derived here")
    error, edge = standard_error(slopes), 2 * 3**0.5
    claim.equal(
        "uniform",
        "The mean output of prompts of 4,000 uniform tokens of variance 1, divided by the tilt 2, is that of the "
        "infinite prompt, $Λ'(2)/2$.",
        slopes.mean(),
        (3**0.5 / np.tanh(edge) - 1 / 2) / 2,
        within=comparison_quantile(1) * error + 2 / 4000,
        because=BIAS,
        std_error=error,
        rejects=("the tokens are signs, of the same variance", np.tanh(2) / 2),
    )
    return claim
