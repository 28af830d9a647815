"""Claims on the numbers of the by-hand cells."""

import numpy as np

from companion import Claims
from lib.single_location import Spiked, bayes_risk, best_risk, hardmax, linear
from lib.statistics import comparison_quantile, standard_error


def softmax_attains_bayes(errors: np.ndarray) -> Claims:
    """Claim the risk of softmax with the slope √ν on prompts of ten tokens at ν = 6."""
    task = Spiked(10, 6.0)
    claim = Claims("softmax-advantage-by-hand", source="[D26, Prop. 4.2]", box="d26-bayes")
    claim.equal(
        "softmax",
        "The mean error of softmax with the slope $√ν$ on prompts of ten tokens at $ν = 6$ is the Bayes risk.",
        errors.mean(),
        bayes_risk(task),
        std_error=standard_error(errors),
        rejects=("its risk is that of the best linear head", best_risk(task, linear)),
    )
    return claim


def hardmax_is_above(found: np.ndarray) -> Claims:
    """Claim the risk of hardmax from the fraction of prompts where the relevant token has the largest score."""
    task = Spiked(10, 6.0)
    claim = Claims("softmax-advantage-by-hand", source="derived here", box="risk-is-an-angle")
    share = found.mean()
    error = 2 * share * standard_error(found)
    claim.equal(
        "hardmax",
        "With the weight 1 for the largest score and the best scale, the risk is $1 - q²$, where $q$ is the fraction "
        "of prompts whose relevant token has it.",
        1 - share**2,
        best_risk(task, hardmax),
        within=comparison_quantile(1) * error,
        because="99.9 % quantile of one standard normal deviation, times the standard error",
        std_error=error,
        rejects=("hardmax attains the Bayes risk", bayes_risk(task)),
    )
    return claim
