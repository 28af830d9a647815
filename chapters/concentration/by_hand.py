"""Claims on the numbers of the by-hand cells."""

import numpy as np

from companion import Claims
from lib.finite_prompt import participation, score_error
from lib.statistics import standard_error

LOG_LENGTH = np.log(256)


def error_at_one_query(squared_errors: np.ndarray) -> Claims:
    """Claim the mean squared error of prompts of 256 standard normal tokens for a query of size 1."""
    claim = Claims("concentration-by-hand", source="derived here")
    claim.equal(
        "error",
        "The mean squared error of prompts of 256 Gaussian tokens for a query of size 1 is the exact one, $Q$.",
        squared_errors.mean(),
        score_error(1.0, LOG_LENGTH),
        std_error=standard_error(squared_errors),
        rejects=("all tokens have the weight $1/L$, and the error is $1/L$", 1 / 256),
    )
    return claim


def error_in_four_dimensions(squared_errors: np.ndarray) -> Claims:
    """Claim the same error in four dimensions, of which three are orthogonal to the query."""
    claim = Claims("concentration-by-hand", source="derived here")
    along = float(score_error(1.0, LOG_LENGTH))
    claim.equal(
        "dimensions",
        "In four dimensions the mean squared error of the output is $Q + 3P$.",
        squared_errors.mean(),
        along + 3 * participation(1.0, LOG_LENGTH),
        std_error=standard_error(squared_errors),
        rejects=("every coordinate has the error of the first", 4 * along),
    )
    return claim
