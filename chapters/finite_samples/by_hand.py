"""Claims on the numbers of the by-hand cells."""

import numpy as np

from chapters.finite_samples.theory import least_squares_key, quantities_of, ridge_at, solve_fixed_point
from chapters.finite_samples.training import HEADS, SNR, read_tracked
from companion import Claims
from lib.statistics import comparison_quantile, standard_error

# Prompts per dimension of the first cell, and batches of the second cell.
ALPHA, BATCHES = 2.0, 20


def overlaps_determine_the_risk(squares: np.ndarray, *, points: int) -> Claims:
    """Claim the excess risk of softmax at α = 2, from prompts that are drawn for its four overlaps.

    `points` is the number of prompts of the average in the theory.
    """
    claim = Claims("finite-samples-by-hand", source="[D26, Result 5.1]", box="replica-prediction")
    ridges = read_tracked("best_ridges")
    softmax, linear = (
        quantities_of(solve_fixed_point(head, ALPHA, ridge_at(ridges, name, ALPHA), points=points))["risk"]
        for name, head in HEADS.items()
    )
    error = np.hypot(standard_error(squares), softmax.std_error)
    claim.equal(
        "risk",
        "Four overlaps of softmax that is trained on two prompts per dimension determine its risk on fresh prompts.",
        squares.mean(),
        softmax.known,
        within=comparison_quantile(1) * error + 2e-3,
        because="99.9 % quantile of one standard normal deviation, times the standard errors of both risks, and 0.002 "
        "for overlaps of three decimals",
        std_error=error,
        rejects=("the risk is that of linear attention at the same sample ratio", linear.known),
    )
    return claim


def key_of_least_squares(squared_key: float, features: np.ndarray, targets: np.ndarray) -> Claims:
    """Claim |k|²/D of linear attention fitted to 20,000 prompts whose scores along the hidden key are known."""
    claim = Claims("finite-samples-by-hand", source="derived here", box="least-squares-key")
    fits = [
        np.linalg.lstsq(rows, values)[0]
        for rows, values in zip(np.split(features, BATCHES), np.split(targets, BATCHES), strict=True)
    ]
    claim.equal(
        "key",
        "The least-squares weights of 20,000 prompts have the key of linear attention for infinitely many prompts, "
        "$q_k = ν (1 - 1/L)²$.",
        squared_key,
        least_squares_key(),
        std_error=standard_error(np.array([(slope / scale) ** 2 for scale, slope in fits])),
        rejects=("the key is that of the best softmax head, $q_k = ν$", SNR),
    )
    return claim
