"""Distribution of the scores of a prompt, on a grid: one hidden token among others.

In the spiked model the hidden token's score has one normal distribution and the others' another. In the max model all
scores have the same distribution and the hidden token is chosen after them; but `ε ~ softmax(νχ*)` is the argmax of
`νχ*_l + Gumbel_l`, and given the largest value -y tokens are independent again: one hidden, the others below. So both
models are mixtures of prompts of independent tokens, and every risk is a sum of products of one-token averages.
Derived here, see book/softmax_advantage.
"""

import math
from dataclasses import replace

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from lib._checks import public
from lib._namespace import choose, jitted, log_ndtr, namespace, softmax
from lib._types import AnyArray, Scalar, Truth
from lib.partition import Resolution, _bracket, log_survival, log_tilted

# Nodes of a grid, and where it ends, in standard deviations of a score: to the right weights may tilt the law.
SCORE_NODES, LOWEST_SCORE, HIGHEST_SCORE = 4096, 9.0, 16.0
# Rows of a mixture: few where every row meets a whole prompt, many where they are only added up.
JOINT_ROWS, MARGINAL_ROWS = 97, 1024
# The largest step that a trapezoid may take across an edge of width 1, and where a half-line ends.
LARGEST_STEP, LARGEST_STEP_AT_EDGE = 0.4, 0.1
# Numbers of nodes that NumPy takes at once where the grid is finer than an average needs, and the step in y it needs.
STRIDES, LARGEST_LEVEL_STEP = (1, 2, 4, 8, 16), 0.3
# Natural logarithms that a density falls before it is cut, and that of √(2π).
LOG_DROP, LOG_ROOT = 42.0, 0.5 * math.log(2 * math.pi)
# The largest u at which e^{u - e^u} is not negligible.
LARGEST_U = 4.0
# Number of blocks of nodes that NumPy takes one after another, so that they fit into the cache.
NODE_BLOCKS = 32
# The spread of scores that are all equal, so that nothing divides by it.
SMALLEST_SPREAD = 1e-6


class ScoreMixture(eqx.Module):
    """A mixture over rows; in each row the scores of one hidden token and of L - 1 others are independent.

    Attributes:
      length: number L of tokens.
      scores: nodes of the grid, equally spaced.
      row_weights: probability of each row.
      hidden: probability of each node for the hidden token's score, by row.
      others: probability of each node for the score of another token, by row.
      offset: mean of the hidden score that the spike alone explains.
      hidden_is_extreme: whether the hidden token has the largest or the smallest score in every row.
      resolved: whether the grid resolves all these functions.
      stride: every so many nodes are enough for them; 1 where the task is traced.
    """

    length: Scalar
    scores: Float[AnyArray, " n"]
    row_weights: Float[AnyArray, " rows"]
    hidden: Float[AnyArray, "rows n"]
    others: Float[AnyArray, "rows n"]
    offset: Scalar
    hidden_is_extreme: Truth
    resolved: Truth
    stride: int = eqx.field(static=True, default=1)

    @property
    def step(self) -> Scalar:
        """Distance from one node to the next; negative where the key points away from k*."""
        return self.scores[1] - self.scores[0]

    @public
    def resolves(self, steepness: Scalar) -> Truth:
        """Return whether the grid integrates a function with edges of width 1/`steepness` to the last digits.

        Args:
          steepness: inverse width of the edges.

        Returns:
          A truth value, shape ().

        Transformations: jit, vmap.
        """
        return self.resolved & (steepness * abs(self.step) <= LARGEST_STEP)

    @public
    def thinned(self, stride: int) -> "ScoreMixture":
        """Return the mixture on every `stride`-th node, with the weights of all nodes: for functions that vary slowly.

        Args:
          stride: a divisor of the number of nodes.

        Returns:
          A mixture with fewer nodes.
        """
        densities = {"hidden": stride * self.hidden[:, ::stride], "others": stride * self.others[:, ::stride]}
        return replace(self, scores=self.scores[::stride], **densities)

    def coarsened(self, steepness: Scalar) -> "ScoreMixture":
        """Return the mixture on as few nodes as averages of a function with edges of width 1/`steepness` need."""
        if self.stride == 1:
            return self
        return self.thinned(max(s for s in STRIDES if s == 1 or (s <= self.stride and self.resolves(s * steepness))))

    @public
    def weights_above(self, kink: Scalar) -> Float[AnyArray, " n"]:
        """Return quadrature weights of the nodes in an integral over the scores above `kink`.

        Args:
          kink: where the half-line begins, shape (); it must be a node.

        Returns:
          The weights, shape (n,), 0 below the kink.

        Transformations: jit, vmap, grad.
        """
        return half_line_weights(namespace(self.scores).round((self.scores - kink) / abs(self.step)).astype(int))


@jitted()
def spiked_mixture(length: Scalar, offset: Scalar, variance: Scalar, kink: Scalar) -> ScoreMixture:
    """Return the mixture of one hidden score N(offset, variance) and L - 1 other scores N(0, variance).

    Args:
      length: number L of tokens, shape ().
      offset: mean of the hidden score, shape ().
      variance: variance of every score, shape (), at least 0.
      kink: a score at which the grid shall have a node, shape ().

    Returns:
      A mixture of one row.

    Source: [D26].
    """
    xp = namespace(length, offset, variance, kink)
    spread = xp.sqrt(xp.maximum(variance, SMALLEST_SPREAD**2))
    shift = offset / spread
    nodes = _score_grid(
        xp.minimum(shift, 0.0) - LOWEST_SCORE, xp.maximum(shift + LOWEST_SCORE, HIGHEST_SCORE), kink / spread
    )
    hidden, others = (softmax(-0.5 * (nodes - mean) ** 2)[None] for mean in (shift, 0.0))
    return ScoreMixture(
        length, spread * nodes, xp.ones(1), hidden, others, offset, length < 2, xp.asarray(True), _stride(nodes, 1.0)
    )


@jitted()
def max_mixture(length: Scalar, snr: Scalar, overlap: Scalar, variance: Scalar) -> ScoreMixture:
    """Return the joint distribution of the scores of the max model, by the largest of `νχ*` plus Gumbel noise.

    Args:
      length: number L of tokens, shape ().
      snr: signal strength ν, shape (); may be infinite.
      overlap: covariance of a score with the χ* that chooses the hidden token, shape ().
      variance: variance of every score, shape ().

    Returns:
      A mixture of 97 rows.

    Source: derived here, see book/softmax_advantage.
    """
    xp = namespace(length, snr, overlap, variance)
    scale, correlation = _scale_and_correlation(overlap, variance)
    nodes = _score_grid(-LOWEST_SCORE, HIGHEST_SCORE, 0.0)
    is_argmax = xp.isinf(snr)
    row_weights, *distributions = choose(is_argmax, _argmax_rows, _joint_rows, length, snr, nodes)
    (hidden, others), aligned, resolved = _correlate(distributions, nodes, correlation, is_argmax, snr)
    resolved &= is_argmax | (snr * (nodes[1] - nodes[0]) <= LARGEST_STEP)
    ordered = (length < 2) | (is_argmax & aligned)
    return ScoreMixture(
        length,
        scale * nodes,
        row_weights,
        hidden,
        others,
        xp.zeros(()),
        ordered,
        resolved,
        _stride(nodes, xp.maximum(snr, 1.0)),
    )


@jitted()
def max_marginals(length: Scalar, snr: Scalar, overlap: Scalar, variance: Scalar, kink: Scalar) -> ScoreMixture:
    """Return the distributions of the hidden score and of another score of the max model, not jointly.

    Args:
      length: number L of tokens, shape ().
      snr: signal strength ν, shape (); may be infinite.
      overlap: covariance of a score with the χ* that chooses the hidden token, shape ().
      variance: variance of every score, shape ().
      kink: a score at which the grid shall have a node, shape ().

    Returns:
      A mixture of one row, right for averages over one token only.

    Source: derived here, see book/softmax_advantage.
    """
    xp = namespace(length, snr, overlap, variance, kink)
    scale, correlation = _scale_and_correlation(overlap, variance)
    nodes = _score_grid(-LOWEST_SCORE, HIGHEST_SCORE, kink / scale)
    is_argmax = xp.isinf(snr)
    token = softmax(-0.5 * nodes**2)
    hidden = token * choose(is_argmax, _argmax_density_ratio, _hidden_density_ratio, length, snr, nodes)
    others = (length * token - hidden) / xp.maximum(length - 1.0, 1.0)
    (hidden, others), _, resolved = _correlate([hidden[None], others[None]], nodes, correlation, xp.asarray(False), snr)
    resolved &= is_argmax | (snr * (nodes[1] - nodes[0]) <= LARGEST_STEP)
    return ScoreMixture(length, scale * nodes, xp.ones(1), hidden, others, xp.zeros(()), length < 2, resolved)


def _score_grid(low: Scalar, high: Scalar, kink: Scalar):
    """A grid over [low, high] with a node at `kink`, were it long enough."""
    xp = namespace(low, high, kink)
    step = (high - low) / (SCORE_NODES - 2)
    return kink + step * (xp.floor((low - kink) / step) + xp.arange(SCORE_NODES))


def _scale_and_correlation(overlap, variance):
    """Scale and correlation ≥ 0 of a score with χ*: a key that points away from k* reads -χ*."""
    xp = namespace(overlap, variance)
    spread = xp.sqrt(xp.maximum(variance, SMALLEST_SPREAD**2))
    return xp.where(overlap < 0, -spread, spread), xp.minimum(xp.abs(overlap) / spread, 1.0)


def _joint_rows(length, snr, nodes):
    """Given the largest of `νχ* + Gumbel` at -y: others have probability e^{-e^u} to be below, u = y + νx."""
    xp = namespace(length, snr, nodes)
    snr = xp.maximum(snr, SMALLEST_SPREAD)
    y, log_row_weights = _largest_value_nodes(length, snr, JOINT_ROWS)
    u = y[:, None] + snr * nodes
    log_below = -xp.exp(u) - 0.5 * nodes**2
    return xp.exp(log_row_weights), softmax(u + log_below, axis=1), softmax(log_below, axis=1)


def _largest_value_nodes(length, snr, rows):
    xp = namespace(length, snr)
    y, spacing = Resolution(count=rows).levels(snr, xp.log(length))
    log_below = (length - 1.0) * log_survival(y, snr)
    return y, xp.log(length) + log_tilted(1, y, snr) + log_below + xp.log(spacing)


def _argmax_rows(length, snr, nodes):
    """ν = ∞: given the largest score, at a node, the others are normal scores below it."""
    xp = namespace(length, nodes)
    log_density = xp.log(length) - 0.5 * nodes**2 - LOG_ROOT + (length - 1.0) * log_ndtr(nodes)
    first, last = _bracket(log_density, LOG_DROP)
    stride = 1 + (last - first) // (JOINT_ROWS - 1)
    peaks = first + stride * xp.arange(JOINT_ROWS)
    # the last row may leave the grid, where there is nothing
    row_weights = (
        xp.where(peaks < SCORE_NODES, xp.exp(log_density[xp.minimum(peaks, SCORE_NODES - 1)]), 0.0)
        * stride
        * (nodes[1] - nodes[0])
    )
    peaks = xp.minimum(peaks, SCORE_NODES - 1)
    others = half_line_weights(peaks[:, None] - xp.arange(SCORE_NODES)) * xp.exp(-0.5 * nodes**2)
    return (
        row_weights,
        (peaks[:, None] == xp.arange(SCORE_NODES)).astype(float),
        others / xp.sum(others, axis=1, keepdims=True),
    )


def _hidden_density_ratio(length, snr, nodes):
    """`L E[p_1 | χ*_1 = x]`: how much likelier than a token the hidden token is to have the score x."""
    xp = namespace(length, snr, nodes)
    snr = xp.maximum(snr, SMALLEST_SPREAD)
    y, spacing = Resolution(count=MARGINAL_ROWS).levels(snr, xp.log(length))
    if xp is np:
        count = min(MARGINAL_ROWS, math.ceil((y[-1] - y[0]) / LARGEST_LEVEL_STEP) + 1)
        y, spacing = xp.linspace(y[0], y[-1], count, retstep=True)
    log_others = xp.log(length) + (length - 1.0) * log_survival(y, snr)

    def ratio(rows, nodes):
        u = y[rows, None] + snr * nodes
        return spacing * xp.sum(xp.exp(u - xp.exp(u) + log_others[rows, None]), axis=0)

    def significant(nodes):
        """Return the rows where `e^{u - e^u}` counts in its mean over hidden tokens, which is at least 1/L."""
        return slice(*np.searchsorted(y, [-LOG_DROP - np.log(length) - snr * nodes[-1], LARGEST_U - snr * nodes[0]]))

    if xp is np:
        return np.concatenate([ratio(significant(block), block) for block in np.split(nodes, NODE_BLOCKS)])
    return ratio(slice(None), nodes)


def _argmax_density_ratio(length, snr, nodes):
    xp = namespace(length, nodes)
    return length * xp.exp((length - 1.0) * log_ndtr(nodes))


def _stride(nodes, steepness) -> int:
    """Return how many nodes NumPy may take at once for a function of χ* with edges of width 1/`steepness`."""
    if namespace(nodes, steepness) is not np:
        return 1
    step = steepness * (nodes[1] - nodes[0])
    return max(stride for stride in STRIDES if stride == 1 or stride * step <= LARGEST_STEP)


def _correlate(distributions, nodes, correlation, has_edge, snr):
    """Laws of χ* as laws of a score that has the given correlation with it; untouched where that is 1.

    Between, the grid must resolve the conditional law, and more finely so where a law is `has_edge` off.
    """
    xp = namespace(nodes, correlation)
    conditional_spread = xp.sqrt(xp.maximum(1.0 - correlation**2, 0.0))
    step = nodes[1] - nodes[0]
    aligned = conditional_spread < 1e-7

    def blurred(distributions):
        width = xp.maximum(conditional_spread, step)
        stride = _stride(nodes, xp.maximum(xp.maximum(snr, 1.0), correlation / width))
        deviations = (nodes - correlation * nodes[::stride, None]) / width
        transition = stride * step / width * xp.exp(-0.5 * deviations**2 - LOG_ROOT)
        return [row[:, ::stride] @ transition for row in distributions]

    distributions = choose(aligned, lambda distributions: distributions, blurred, distributions)
    return (
        distributions,
        aligned,
        aligned | (conditional_spread >= step / xp.where(has_edge, LARGEST_STEP_AT_EDGE, LARGEST_STEP)),
    )


def _gregory_weights(order: int) -> Float[np.ndarray, " order"]:
    """Weights of the last nodes of a trapezoid that ends inside the support: Gregory's end corrections."""
    coefficients = [1.0]
    for n in range(1, order + 1):
        coefficients.append(-sum(coefficients[k] / (n + 1 - k) for k in range(n)))
    weights = np.ones(order)
    for j in range(1, order + 1):
        for i in range(j):
            weights[i] += coefficients[j] * (-1) ** i * math.comb(j - 1, i)
    return weights


GREGORY_WEIGHTS = _gregory_weights(9)


@public
def half_line_weights(distance: Int[AnyArray, "*batch"]) -> Float[AnyArray, "*batch"]:
    """Return weights of a trapezoid over a half-line with Gregory's end corrections, by distance from its end.

    Args:
      distance: number of nodes between the end and the node; negative outside the half-line.

    Returns:
      The weights, of the shape of `distance`: 0 outside, 1 from the ninth node on.

    Transformations: jit, vmap.
    """
    xp = namespace(distance)
    inside = xp.asarray(GREGORY_WEIGHTS)[xp.clip(distance, 0, GREGORY_WEIGHTS.size - 1)]
    return xp.where(distance < 0, 0.0, xp.where(distance < GREGORY_WEIGHTS.size, inside, 1.0))
