"""Log-likelihood ratios `log g(l, χ*)` [D26] of a few tokens, one per row of scores and token l.

Parameters of a task are numbers, or arrays of shape (..., 1, 1) for a stack of tasks.
"""

from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax

Scores: TypeAlias = Float[np.ndarray, "n L"]
LogRatios: TypeAlias = Float[np.ndarray, "*stack n L"]
Parameter: TypeAlias = float | Float[np.ndarray, "*stack 1 1"]


def spiked_log_ratio(scores: Scores, snr: Parameter) -> LogRatios:
    """Return `log g = √ν χ_l - ν/2`: the hidden token's score is shifted by √ν.

    Args:
      scores: scores of the tokens.
      snr: signal strength ν.

    Returns:
      The log ratio of each token.

    Source: [D26].
    """
    return np.sqrt(snr) * scores - 0.5 * snr


def max_log_ratio(scores: Scores, snr: Parameter) -> LogRatios:
    """Return `log g` with `g = L softmax(νχ*)_l`: the larger a score, the likelier the token is the hidden one.

    Args:
      scores: scores of the tokens.
      snr: signal strength ν.

    Returns:
      The log ratio of each token.

    Source: [D26].
    """
    return log_softmax(snr * scores, axis=-1) + np.log(scores.shape[1])


def shared_log_ratio(scores: Scores, snr: Parameter, correlation: Parameter) -> LogRatios:
    """Return `log g` of the spiked task with correlated scores: χ* is $N(√ν e_l, Σ)$, `Σ = (1 - ρ)I + ρ11ᵀ`.

    Args:
      scores: scores of the tokens.
      snr: signal strength ν.
      correlation: correlation ρ of two scores, at least 0 and below 1.

    Returns:
      The log ratio of each token.

    Source: derived here.
    """
    length = scores.shape[1]
    # the eigenvalues of Σ, and Σ⁻¹χ*
    single, common = 1.0 - correlation, 1.0 + (length - 1) * correlation
    scaled = (scores - correlation / common * np.sum(scores, axis=1, keepdims=True)) / single
    log_density = 0.5 * np.sum(scores * (scores - scaled), axis=-1, keepdims=True)
    log_det = (length - 1) * np.log(single) + np.log(common)
    return np.sqrt(snr) * scaled - 0.5 * snr * (1.0 - correlation / common) / single + log_density - 0.5 * log_det


def narrow_log_ratio(scores: Scores, width: Parameter) -> LogRatios:
    """Return `log g` with `g = N(χ_l; 0, width²)/N(χ_l; 0, 1)`: the score of the hidden token is near zero.

    Args:
      scores: scores of the tokens.
      width: standard deviation of the hidden score, between 0 and 1.

    Returns:
      The log ratio of each token.

    Source: derived here.
    """
    return -0.5 * scores**2 * (1.0 / width**2 - 1.0) - np.log(width)
