"""Averages of a head's weights and scores over a score mixture: all that a risk needs to know of an activation.

An element-wise activation needs one-token averages. The argmax needs the probability that all others are below. A
normalised kernel, `s_l = κ(χ_l)/S`, needs Laplace's identity `Γ(j)/S^j = ∫ e^{jy} exp(-e^y S) dy`, as in
`lib.partition`, here for any κ: one integral over y of products of one-token averages, whatever the number of tokens
[D26].
"""

import math
import operator
from functools import reduce

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from lib._checks import public
from lib._namespace import constant, namespace
from lib._types import AnyArray, Scalar, Truth
from lib.partition import _crossing
from lib.single_location._score_mixture import ScoreMixture, half_line_weights

# Nodes in y, logarithms that the integrand falls before it is cut, and how far Σ s may miss 1.
Y_NODES, LOG_DROP, MASS_TOLERANCE = 224, 40.0, 1e-8
# Nodes that NumPy takes at once, so that they fit into the cache.
BLOCK = 512
# Halvings that find where the nodes end: a place, not a number.
HALVINGS = 25
# The largest probability below one.
LARGEST_PROBABILITY = 1.0 - 1e-15


class Moments(eqx.Module):
    """Averages of weights s and of scores c (χ minus the part of the spike); ε is the hidden token, $C = Σ s_l c_l$.

    Risks need the first two; with cross overlaps they need all.

    Attributes:
      hidden: `E s_ε`.
      power: `E Σ s²`.
      hidden_power: `E s_ε²`.
      hidden_score: `E c_ε s_ε`.
      hidden_pooled: `E c_ε C`.
      weight_pooled: `E s_ε C`.
      pooled_power: `E C²`.
    """

    hidden: Scalar
    power: Scalar
    hidden_power: Scalar
    hidden_score: Scalar
    hidden_pooled: Scalar
    weight_pooled: Scalar
    pooled_power: Scalar


def nan_unless(holds: Truth, moments: Moments) -> Moments:
    """Return the moments where `holds`, and NaN elsewhere.

    Args:
      holds: whether the quadrature resolved them, shape ().
      moments: the moments.

    Returns:
      Moments of the same shapes.
    """
    xp = namespace(moments.hidden)
    return jax.tree.map(lambda leaf: xp.where(holds, leaf, xp.nan), moments)


@public
def elementwise_moments(
    mixture: ScoreMixture, weights: Float[AnyArray, " n"], *, inside: Float[AnyArray, " n"] | float = 1.0
) -> Moments:
    """Return the moments of weights that depend on the token's own score alone, by one-token averages.

    Args:
      mixture: the distribution of the scores; rows are averaged.
      weights: the weight of a token at each node of the mixture, shape (n,).
      inside: quadrature weights of the nodes, shape (n,), where the activation has a kink.

    Returns:
      All seven moments.
    """
    hidden, others = (mixture.row_weights @ density * inside for density in (mixture.hidden, mixture.others))
    other_tokens, hidden_score, score = mixture.length - 1.0, mixture.scores - mixture.offset, mixture.scores
    mean_other_score, mean_hidden_score = others @ (weights * score), hidden @ (weights * hidden_score)
    mean, square = hidden @ weights, hidden @ weights**2
    return Moments(
        hidden=mean,
        power=square + other_tokens * (others @ weights**2),
        hidden_power=square,
        hidden_score=mean_hidden_score,
        hidden_pooled=hidden @ (weights * hidden_score**2),
        weight_pooled=hidden @ (weights**2 * hidden_score) + other_tokens * mean * mean_other_score,
        pooled_power=hidden @ (weights * hidden_score) ** 2
        + other_tokens * (others @ (weights * score) ** 2 + 2 * mean_hidden_score * mean_other_score)
        + other_tokens * (other_tokens - 1.0) * mean_other_score**2,
    )


@public
def argmax_moments(mixture: ScoreMixture, *, inside: Float[AnyArray, " n"] | float = 1.0) -> Moments:
    """Return the moments of a weight of 1 on the largest score and 0 elsewhere.

    Args:
      mixture: the joint distribution of the scores.
      inside: quadrature weights of the nodes of a left half-line, shape (n,); then prompts count that have all scores
        there.

    Returns:
      All seven moments; those with c and C are right for mixtures of a single row only.
    """
    xp = namespace(mixture.scores)
    ascending = mixture.step > 0

    def upward(rows):
        return xp.where(ascending, rows, rows[..., ::-1])

    scores, hidden, others = upward(mixture.scores), upward(mixture.hidden * inside), upward(mixture.others)
    above = xp.maximum(sum_above(others), 1e-300)
    below = xp.maximum(sum_above(others[:, ::-1])[:, ::-1], 1e-300)
    log_below = xp.where(above < 0.5, xp.log1p(-xp.minimum(above, 0.5)), xp.log(below))
    other_tokens, hidden_score = mixture.length - 1.0, scores - mixture.offset

    def all_below(tokens):
        return xp.exp(xp.maximum(tokens, 0.0) * log_below)

    def mean(values):
        return mixture.row_weights @ xp.sum(values, axis=1)

    largest_is_hidden = xp.where(ascending | (mixture.length < 2), mean(hidden), 0.0)
    first = xp.where(mixture.hidden_is_extreme, largest_is_hidden, mean(hidden * all_below(other_tokens)))
    all_inside = xp.sum(hidden, axis=1) * xp.sum(mixture.others * inside, axis=1) ** other_tokens
    hidden_below = sum_above(hidden[:, ::-1])[:, ::-1]
    score_below = sum_above((hidden * hidden_score)[:, ::-1])[:, ::-1]
    mean_hidden_score = mean(hidden * hidden_score * all_below(other_tokens))
    square = mean(hidden * hidden_score**2 * all_below(other_tokens))
    return Moments(
        hidden=first,
        power=mixture.row_weights @ all_inside,
        hidden_power=first,
        hidden_score=mean_hidden_score,
        hidden_pooled=square + other_tokens * mean(others * scores * score_below * all_below(other_tokens - 1.0)),
        weight_pooled=mean_hidden_score,
        pooled_power=square + other_tokens * mean(others * scores**2 * hidden_below * all_below(other_tokens - 1.0)),
    )


@public
def sum_above(rows: Float[AnyArray, "rows n"]) -> Float[AnyArray, "rows n"]:
    """Return the integral from every node to the last one, by a trapezoid with Gregory's end corrections.

    Args:
      rows: values at the nodes times the step, shape (rows, n).

    Returns:
      The integrals, shape (rows, n).

    Transformations: jit, vmap, grad.
    """
    xp = namespace(rows)
    correction = half_line_weights(xp.arange(9)) - 1.0
    ahead = xp.pad(rows, ((0, 0), (0, correction.size - 1)))
    corrected = sum(correction[j] * ahead[:, j : j + rows.shape[1]] for j in range(correction.size))
    return xp.cumsum(rows[:, ::-1], axis=1)[:, ::-1] + corrected


@public
def normalised_moments(
    mixture: ScoreMixture,
    log_kernel: Float[AnyArray, " n"],
    *,
    inside: Float[AnyArray, " n"] | float = 1.0,
    with_scores: bool = True,
) -> Moments:
    """Return the moments of `s_l = κ(χ_l)/Σ_m κ(χ_m)`, by Laplace's identity.

    Args:
      mixture: the joint distribution of the scores.
      log_kernel: log κ at each node of the mixture, shape (n,).
      inside: where κ vanishes on a half-line, the quadrature weights of the nodes of the other one, shape (n,). A
        prompt without any κ > 0 then counts as s = 0.
      with_scores: whether the moments with c and C are computed.

    Returns:
      All seven moments; NaN where the quadrature misses `E Σ s = 1` by 1e-8. Those with c and C are NaN
      for mixtures of more than one row, and where they are not computed.
    """
    xp = namespace(mixture.scores, log_kernel)
    length, hidden, others = mixture.length, mixture.hidden * inside, mixture.others * inside
    (y,) = constant(_window(mixture, log_kernel, inside))
    c, score, rows = mixture.scores - mixture.offset, mixture.scores, len(mixture.row_weights)
    densities = [hidden, others]
    if with_scores and rows == 1:
        densities += [hidden * c, hidden * c**2, others * score, others * score**2]
    lost, first, square = (
        xp.split(each, len(densities)) for each in _laplace_averages(xp.concatenate(densities), y, log_kernel)
    )
    log_others = xp.log1p(-xp.minimum(lost[1], LARGEST_PROBABILITY))
    hidden_factor = 1.0 - lost[0]

    def of_others(tokens):
        """`φ^{L - tokens}` times the number of ways to choose tokens - 1 others."""
        ways = math.prod(length - k for k in range(1, tokens))
        return ways * xp.exp((length - tokens) * log_others)

    def row_integrals(values):
        return (y[1] - y[0]) * xp.sum(values, axis=1)

    def integral(values):
        return mixture.row_weights @ row_integrals(values)

    no_weight = (1.0 - xp.sum(hidden, axis=1)) * xp.maximum(1.0 - xp.sum(others, axis=1), 0.0) ** (length - 1.0)
    mass = row_integrals(first[0] * of_others(1) + first[1] * hidden_factor * of_others(2))
    mass_error = mixture.row_weights @ xp.abs(mass + no_weight - 1.0)

    hidden_mean = integral(first[0] * of_others(1))
    power = integral(square[0] * of_others(1) + square[1] * hidden_factor * of_others(2))
    hidden_power = integral(square[0] * of_others(1))
    if len(densities) == 2:
        moments = Moments(hidden_mean, power, hidden_power, *(xp.full((), xp.nan),) * 4)
        return nan_unless(mass_error < MASS_TOLERANCE, moments)
    mean_hidden_score, mean_other_score = first[2], first[4]
    moments = Moments(
        hidden=hidden_mean,
        power=power,
        hidden_power=hidden_power,
        hidden_score=integral(mean_hidden_score * of_others(1)),
        hidden_pooled=integral(first[3] * of_others(1) - lost[2] * mean_other_score * of_others(2)),
        weight_pooled=integral(square[2] * of_others(1) + first[0] * mean_other_score * of_others(2)),
        pooled_power=integral(
            square[3] * of_others(1)
            + (square[5] * hidden_factor + 2 * mean_hidden_score * mean_other_score) * of_others(2)
            + mean_other_score**2 * hidden_factor * of_others(3)
        ),
    )
    return nan_unless(mass_error < MASS_TOLERANCE, moments)


def _laplace_averages(
    densities: Float[AnyArray, "rows n"], y: Float[AnyArray, " levels"], log_kernel: Float[AnyArray, " n"]
) -> list[Float[AnyArray, "rows levels"]]:
    """Return the averages of `1 - e^{-w}`, `w e^{-w}` and `w² e^{-w}` over densities, with w = κ e^y."""
    xp = namespace(densities, y, log_kernel)

    def of_nodes(part: slice) -> list[Float[AnyArray, "rows levels"]]:
        weight = xp.exp(y + log_kernel[part, None])
        factor = xp.exp(-weight)
        first = weight * factor
        return [densities[:, part] @ each for each in (-xp.expm1(-weight), first, weight * first)]

    block = BLOCK if xp is np else log_kernel.size
    parts = [of_nodes(slice(start, start + block)) for start in range(0, log_kernel.size, block)]
    return [reduce(operator.add, part) for part in zip(*parts, strict=True)]


def _window(
    mixture: ScoreMixture, log_kernel: Float[AnyArray, " n"], inside: Float[AnyArray, " n"] | float
) -> Float[AnyArray, " levels"]:
    """Nodes in y that hold all but e^{-LOG_DROP} of E s_ε, if the rows of the mixture were alike."""
    xp = namespace(mixture.scores, log_kernel)
    hidden, others = (mixture.row_weights @ density * inside for density in (mixture.hidden, mixture.others))
    finite = xp.isfinite(log_kernel)
    largest = xp.max(log_kernel)
    span = largest - xp.min(xp.where(finite, log_kernel, largest)) + 2 * LOG_DROP

    def expected(y):
        """Return the expected number of tokens of weight above $e^{-y}$, and the logarithm of the integrand."""
        weight = xp.exp(xp.asarray(y)[..., None] + log_kernel)
        complement, other_tokens = -xp.expm1(-weight), mixture.length - 1.0
        log_token = xp.log(xp.maximum((weight * xp.exp(-weight)) @ hidden, 1e-300))
        of_others = xp.minimum(complement @ others, LARGEST_PROBABILITY)
        return complement @ hidden + other_tokens * of_others, log_token + other_tokens * xp.log1p(-of_others)

    middle = _crossing(lambda y: expected(y)[0] < 0.3, -largest - span, -largest + span, halvings=HALVINGS)
    floor = expected(middle)[1] - LOG_DROP
    bottom = _crossing(lambda y: expected(y)[1] < floor, middle - span, middle, halvings=HALVINGS)
    top = _crossing(lambda y: expected(y)[1] > floor, middle, middle + span, halvings=HALVINGS)
    return xp.linspace(bottom, top, Y_NODES)
