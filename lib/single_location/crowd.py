"""Where the scores of a prompt fall: one hidden token in a crowd of others, on a grid.

In the spiked model the hidden token's score is drawn from one normal law and the others' from another. In the max
model all scores are alike and the hidden token is chosen after them; but `ε ~ softmax(νχ*)` is the argmax of
`νχ*_l + Gumbel_l`, and given the largest value -y tokens are independent again: one hidden, the others below. So
both models are mixtures of crowds of independent tokens, and every risk is a sum of products of one-token averages.
Derived here, see book/softmax_advantage.
"""

import math
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int

from lib.partition import Resolution, levels, log_survival, log_tilted

# Nodes of a grid, and where it ends, in standard deviations of a score: to the right weights may tilt the law.
NODES, LEFT, RIGHT = 4096, 9.0, 16.0
# Rows of a mixture: few where every row meets a whole prompt, many where they are only added up.
ROWS, MANY_ROWS = 97, 1024
# The largest step that a trapezoid may take across an edge of width 1, and where a half-line ends.
STEP, HALF_STEP = 0.4, 0.1
# Natural logarithms that a density falls before it is cut.
DROP = 42.0
# The spread of scores that are all equal, so that nothing divides by it.
SMALLEST = 1e-6


class Crowd(eqx.Module):
    """A mixture over rows; in each, one hidden token and L - 1 others with independent scores.

    `hidden` and `others` are probabilities of the nodes `scores`, row by row, whose own are `mixture`. `offset` is
    the mean of the hidden score that the spike alone explains. `sorted` says that the hidden token is the first or the
    last of all in every row, `trusted` that the grid resolves all this.
    """

    length: Float[Array, ""]
    scores: Float[Array, " n"]
    mixture: Float[Array, " rows"]
    hidden: Float[Array, "rows n"]
    others: Float[Array, "rows n"]
    offset: Float[Array, ""]
    sorted: Bool[Array, ""]
    trusted: Bool[Array, ""]

    @property
    def step(self) -> Float[Array, ""]:
        """From one node to the next; negative where a larger score hints at the others."""
        return self.scores[1] - self.scores[0]

    def resolves(self, steepness: float) -> Bool[Array, ""]:
        """Whether a function of a score with edges of width 1/`steepness` is integrated to the last digits."""
        return self.trusted & (steepness * jnp.abs(self.step) <= STEP)

    def thinned(self, stride: int) -> "Crowd":
        """Every `stride`-th node, with the weights of all: for functions that are flat over so many."""
        laws = {"hidden": stride * self.hidden[:, ::stride], "others": stride * self.others[:, ::stride]}
        return replace(self, scores=self.scores[::stride], **laws)

    def beyond(self, kink: float | Float[Array, ""]) -> Float[Array, " n"]:
        """Weights of the nodes in an integral over the scores above `kink`, which must be a node."""
        return half_line(jnp.round((self.scores - kink) / jnp.abs(self.step)).astype(int))


@jax.jit
def spiked_crowd(
    length: Float[Array, ""], offset: Float[Array, ""], variance: Float[Array, ""], kink: Float[Array, ""]
) -> Crowd:
    """One hidden score N(offset, variance), the others N(0, variance). The grid has a node at `kink`."""
    spread = jnp.sqrt(jnp.maximum(variance, SMALLEST**2))
    away = offset / spread
    g = _nodes(jnp.minimum(away, 0.0) - LEFT, jnp.maximum(away + LEFT, RIGHT), kink / spread)
    hidden, others = (jax.nn.softmax(-0.5 * (g - mean) ** 2)[None] for mean in (away, 0.0))
    return Crowd(length, spread * g, jnp.ones(1), hidden, others, offset, length < 2, jnp.asarray(True))


@jax.jit
def max_crowd(
    length: Float[Array, ""], snr: Float[Array, ""], overlap: Float[Array, ""], variance: Float[Array, ""]
) -> Crowd:
    """Scores of variance `variance` and covariance `overlap` with those that choose the hidden token."""
    scale, correlation = _reading(overlap, variance)
    x = _nodes(-LEFT, RIGHT, 0.0)
    certain = jnp.isinf(snr)
    mixture, *laws = jax.lax.cond(certain, _rows_below, _rows, length, snr, x)
    (hidden, others), aligned, trusted = _seen(laws, x, correlation, certain)
    trusted &= certain | (snr * (x[1] - x[0]) <= STEP)
    ordered = (length < 2) | (certain & aligned)
    return Crowd(length, scale * x, mixture, hidden, others, jnp.zeros(()), ordered, trusted)


@jax.jit
def max_marginals(
    length: Float[Array, ""],
    snr: Float[Array, ""],
    overlap: Float[Array, ""],
    variance: Float[Array, ""],
    kink: Float[Array, ""],
) -> Crowd:
    """The same in one row: the law of the hidden score and that of another one, not jointly."""
    scale, correlation = _reading(overlap, variance)
    x = _nodes(-LEFT, RIGHT, kink / scale)
    certain = jnp.isinf(snr)
    token = jax.nn.softmax(-0.5 * x**2)
    hidden = token * jax.lax.cond(certain, _boost_of_largest, _boost, length, snr, x)
    others = (length * token - hidden) / jnp.maximum(length - 1.0, 1.0)
    (hidden, others), _, trusted = _seen([hidden[None], others[None]], x, correlation, jnp.asarray(False))
    trusted &= certain | (snr * (x[1] - x[0]) <= STEP)
    return Crowd(length, scale * x, jnp.ones(1), hidden, others, jnp.zeros(()), length < 2, trusted)


def _nodes(low: Float[Array, ""] | float, high: Float[Array, ""] | float, kink: Float[Array, ""] | float):
    """A grid over [low, high] with a node at `kink`, were it long enough."""
    step = (high - low) / (NODES - 2)
    return kink + step * (jnp.floor((low - kink) / step) + jnp.arange(NODES))


def _reading(overlap, variance):
    """Scale and correlation ≥ 0 of a score with χ*: a key that points away from k* reads -χ*."""
    spread = jnp.sqrt(jnp.maximum(variance, SMALLEST**2))
    return jnp.where(overlap < 0, -spread, spread), jnp.minimum(jnp.abs(overlap) / spread, 1.0)


def _rows(length, snr, x):
    """Given the largest of `νχ* + Gumbel` at -y: others have probability e^{-e^u} to be below, u = y + νx."""
    snr = jnp.maximum(snr, SMALLEST)
    y, log_mixture = _largest(length, snr, ROWS)
    u = y[:, None] + snr * x
    log_below = -jnp.exp(u) - 0.5 * x**2
    return jnp.exp(log_mixture), jax.nn.softmax(u + log_below, axis=1), jax.nn.softmax(log_below, axis=1)


def _largest(length, snr, rows):
    y, spacing = levels(snr, jnp.log(length), resolution=Resolution(levels=rows))
    log_below = (length - 1.0) * log_survival(y, snr)
    return y, jnp.log(length) + log_tilted(1, y, snr) + log_below + jnp.log(spacing)


def _rows_below(length, snr, x):
    """ν = ∞: given the largest score, at a node, the others are normal scores below it."""
    log_density = jnp.log(length) + norm.logpdf(x) + (length - 1.0) * norm.logcdf(x)
    inside = log_density > jnp.max(log_density) - DROP
    first, last = jnp.argmax(inside), NODES - 1 - jnp.argmax(inside[::-1])
    stride = 1 + (last - first) // (ROWS - 1)
    at = first + stride * jnp.arange(ROWS)
    # the last row may leave the grid, where there is nothing
    mixture = jnp.where(at < NODES, jnp.exp(log_density[jnp.minimum(at, NODES - 1)]), 0.0) * stride * (x[1] - x[0])
    at = jnp.minimum(at, NODES - 1)
    others = half_line(at[:, None] - jnp.arange(NODES)) * jnp.exp(-0.5 * x**2)
    return mixture, jax.nn.one_hot(at, NODES), others / jnp.sum(others, axis=1, keepdims=True)


def _boost(length, snr, x):
    """`L E[p_1 | χ*_1 = x]`: how much likelier than a token the hidden token is to have the score x."""
    snr = jnp.maximum(snr, SMALLEST)
    y, spacing = levels(snr, jnp.log(length), resolution=Resolution(levels=MANY_ROWS))
    u = y[:, None] + snr * x
    log_others = jnp.log(length) + (length - 1.0) * log_survival(y, snr)
    return spacing * jnp.sum(jnp.exp(u - jnp.exp(u) + log_others[:, None]), axis=0)


def _boost_of_largest(length, snr, x):
    return length * jnp.exp((length - 1.0) * norm.logcdf(x))


def _seen(laws, x, correlation, cut):
    """Laws of χ* as laws of a score that has the given correlation with it; untouched where that is 1.

    Between, the grid must resolve the conditional law, and more finely so where a law is `cut` off.
    """
    rest = jnp.sqrt(jnp.maximum(1.0 - correlation**2, 0.0))
    step = x[1] - x[0]
    aligned = rest < 1e-7

    def smeared(laws):
        width = jnp.maximum(rest, step)
        transition = step / width * norm.pdf((x - correlation * x[:, None]) / width)
        return [law @ transition for law in laws]

    laws = jax.lax.cond(aligned, lambda laws: laws, smeared, laws)
    return laws, aligned, aligned | (rest >= step / jnp.where(cut, HALF_STEP, STEP))


def _gregory(order: int) -> Float[np.ndarray, " order"]:
    """Weights of the last nodes of a trapezoid that ends inside the support: Gregory's end corrections."""
    coefficients = [1.0]
    for n in range(1, order + 1):
        coefficients.append(-sum(coefficients[k] / (n + 1 - k) for k in range(n)))
    weights = np.ones(order)
    for j in range(1, order + 1):
        for i in range(j):
            weights[i] += coefficients[j] * (-1) ** i * math.comb(j - 1, i)
    return weights


HALF_LINE = _gregory(9)


def half_line(distance: Int[Array, "*batch"]) -> Float[Array, "*batch"]:
    """Weights of a trapezoid over the nodes at distance ≥ 0 from the end of a half-line, by their distance."""
    inside = jnp.asarray(HALF_LINE)[jnp.clip(distance, 0, HALF_LINE.size - 1)]
    return jnp.where(distance < 0, 0.0, jnp.where(distance < HALF_LINE.size, inside, 1.0))
