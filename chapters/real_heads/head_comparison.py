"""One attention head on one prompt, compared with a Gaussian distribution of the prompt's own moments.

Scores $s_l$ (scaled as in the network) and values $v_l$ of L tokens. The softmax output is `o = Σ p_l v_l`, p =
softmax(s). Gaussian tokens with the prompt's own mean and covariance give, for L → ∞, the tilted mean [BB26, Lemma 2.1]

    o_lin = v̄ + (1/L) Σ (s_l - s̄)(v_l - v̄),

which is affine in the query when scores are. A finite Gaussian prompt has the mean output `v̄ + (1 - P)(o_lin - v̄)`
(lib.finite_prompt.mean_output). A `Comparison` holds squares and products: their sums over queries, prompts or both
give the share of the output that the prediction explains, and the best slope.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Scores = Float[np.ndarray, "q l"]
Values = Float[np.ndarray, "l e"]
# An axis of an array, several, or all.
Axis = int | tuple[int, ...] | None


class Comparison(NamedTuple):
    """The output of a head at each query compared with `linear_prediction`, as squares and products.

    With the output o and the prediction o_lin, both minus the mean value v̄:

    Attributes:
      tau: standard deviation of the scores over the prompt's tokens.
      participation: Σ p².
      output: |o|².
      linear: |o_lin|².
      product: ⟨o, o_lin⟩.
    """

    tau: Float[np.ndarray, "..."]
    participation: Float[np.ndarray, "..."]
    output: Float[np.ndarray, "..."]
    linear: Float[np.ndarray, "..."]
    product: Float[np.ndarray, "..."]


def linear_prediction(scores: Scores, values: Values) -> Float[np.ndarray, "q e"]:
    """Return `o_lin = v̄ + (1/L) Σ (s_l - s̄)(v_l - v̄)`, the output for Gaussian tokens with the prompt's own moments.

    Args:
      scores: scores of each query with each token, shape (q, L), L ≥ 1.
      values: values of the tokens, shape (L, e).

    Returns:
      The predictions, shape (q, e).

    Raises:
      ValueError: if shapes do not fit.

    Source: [BB26, Lemma 2.1].
    """
    _check(scores, values)
    mean = values.mean(axis=0)
    centred = scores - scores.mean(axis=1, keepdims=True)
    return mean + centred @ (values - mean) / len(values)


def compare(scores: Scores, values: Values) -> Comparison:
    """Compare the softmax outputs of one head on one prompt with `linear_prediction`, query by query.

    Args:
      scores: scores of each query with each token, shape (q, L), L ≥ 1.
      values: values of the tokens, shape (L, e).

    Returns:
      The comparison, whose arrays have shape (q,).

    Raises:
      ValueError: if shapes do not fit.
    """
    _check(scores, values)
    values = values - values.mean(axis=0)
    scores = scores - scores.mean(axis=1, keepdims=True)
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=1, keepdims=True)
    output, linear = weights @ values, scores @ values / len(values)
    return Comparison(
        tau=np.sqrt(np.vecdot(scores, scores) / len(values)),
        participation=np.vecdot(weights, weights),
        output=np.vecdot(output, output),
        linear=np.vecdot(linear, linear),
        product=np.vecdot(output, linear),
    )


def explained_share(comparison: Comparison, axis: Axis = None) -> Float[np.ndarray, "..."]:
    """Return R², the share of Σ|o - v̄|² that the best multiple of o_lin - v̄ explains.

    Args:
      comparison: squares and products, any shape.
      axis: the axes over which sums are taken; all of them by default.

    Returns:
      R² in [0, 1], of the shape without `axis`; NaN where the output or the prediction does not vary.
    """
    output, linear, product = (
        np.sum(part, axis) for part in (comparison.output, comparison.linear, comparison.product)
    )
    return product**2 / (output * linear)


def regression_slope(comparison: Comparison, axis: Axis = None) -> Float[np.ndarray, "..."]:
    """Return the multiple of o_lin - v̄ that is closest to o - v̄ in mean square.

    For Gaussian tokens, with the moments of their distribution, it is the mean of 1 - P, weighted by |o_lin - v̄|².

    Args:
      comparison: squares and products, any shape.
      axis: the axes over which sums are taken; all of them by default.

    Returns:
      The slope, of the shape without `axis`.
    """
    return np.sum(comparison.product, axis) / np.sum(comparison.linear, axis)


def _check(scores: Scores, values: Values) -> None:
    """Raise if the shapes of scores and values do not fit."""
    if scores.ndim != 2 or values.ndim != 2 or scores.shape[1] != len(values) or not len(values):
        raise ValueError(
            "A head's `scores` have shape (queries, L) and its `values` shape (L, e) with one L ≥ 1, because every "
            f"score weighs a value. Got shapes {scores.shape} and {values.shape}."
        )
