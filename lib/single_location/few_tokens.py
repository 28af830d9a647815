"""Prompts of a few tokens by brute force: sums over all their scores on a lattice, for any task and any weights.

A task is a likelihood ratio `g(ε, χ*)` [D26]: the joint density of the hidden index and the scores, relative to a
uniform ε and independent standard normal χ*. Laplace's identity (`moments`) applies only if tokens are independent of
each other; a lattice works for every task, for up to three tokens.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from lib._checks import public, require_count, require_float64
from lib.single_location.activations import Activation, optimal_risk

# Where scores end, in standard deviations.
_LARGEST_SCORE = 8.0
# The chance of a row of scores that a search leaves out, and how many rows it keeps or adds at once.
_SMALLEST_PROBABILITY, _ROWS_PER_BLOCK = 1e-13, 2**13
# The flattest and the steepest heads that are looked at, and how many between.
_SMALLEST_SLOPE, _LARGEST_SLOPE, _SLOPE_COUNT = 1e-5, 30.0, 13


class ScoreLattice(eqx.Module):
    """Scores of L tokens in decreasing order, with the probability that standard normal scores are these, in any
    order.

    It is a trapezoid: averages of functions that are analytic in a strip of width a about each axis are wrong by
    `e^{-2πa/step}`. A task that shifts a score by s needs `shift` = s.

    With the default step, averages over the posterior of a signal of strength ν ≤ 10 (spiked) or ν ≤ 4 (max) and over
    weights of slopes up to 4 have an absolute error below 1e-9 if `shift` is large enough; the step must shrink in
    proportion for larger slopes.

    Args:
      length: number L of tokens.
      step: distance of the nodes.
      shift: the scores reach from -8 to 8 + shift standard deviations.

    Attributes:
      scores: scores of the tokens, in decreasing order.
      probabilities: probability of each row of scores.
    """

    scores: Float[Array, "n L"]
    probabilities: Float[Array, " n"]

    def __init__(self, length: int, *, step: float = 0.1, shift: float = 0.0):
        length = require_count("ScoreLattice", "length", length, "an empty prompt defines no probability measure.")
        axis = np.arange(-_LARGEST_SCORE, _LARGEST_SCORE + shift + step / 2, step)
        decreasing = np.ones((axis.size,) * length, bool)
        for previous, current in itertools.pairwise(np.ogrid[(slice(axis.size),) * length]):
            decreasing &= current <= previous
        nodes = np.asarray(np.nonzero(decreasing))
        orders, repeats = math.factorial(length), 1.0
        for previous, current in itertools.pairwise(nodes):
            repeats = np.where(current == previous, repeats + 1.0, 1.0)
            orders = orders / repeats
        density = np.exp(-0.5 * axis**2) * step / np.sqrt(2.0 * np.pi)
        self.scores = jnp.asarray(axis[nodes.T])
        self.probabilities = jnp.asarray(orders * np.prod(density[nodes], axis=0))


class Prompts(eqx.Module):
    """Prompts of a few tokens of a task.

    Attributes:
      scores: scores of the tokens.
      probabilities: probability of each row of scores.
      posterior: posterior probability of each token to be the hidden one.
    """

    scores: Float[Array, "n L"]
    probabilities: Float[Array, " n"]
    posterior: Float[Array, "n L"]

    @classmethod
    @public
    def from_log_ratio(cls, lattice: ScoreLattice, log_ratio: Float[Array, "n L"]) -> "Prompts":
        """Return the prompts of the task with this likelihood ratio.

        Args:
          lattice: the lattice of scores.
          log_ratio: `log g(l, χ*)` for every row of scores and every token l, shape (n, L).

        Returns:
          The prompts.
        """
        return cls(lattice.scores, *_reweight(lattice.probabilities, log_ratio))

    @public
    @eqx.filter_jit
    def bayes_risk(self) -> Float[Array, ""]:
        """Return `1 - E Σ p²`, p the posterior.

        Returns:
          The risk, shape (), absolute error as for `ScoreLattice`.

        Source: [D26]. Transformations: jit, vmap, grad.
        """
        return 1.0 - self.probabilities @ jnp.sum(self.posterior**2, axis=1)

    @public
    def without_unlikely_rows(self) -> "Prompts":
        """Return the prompts without the rows of a probability below 1e-13, padded to whole blocks for few
        compilations.

        Returns:
          The remaining prompts; rows that fill the last block have probability 0.
        """
        likely_rows = np.flatnonzero(np.asarray(self.probabilities) > _SMALLEST_PROBABILITY)
        # what fills the last block once more has no chance
        rows = np.append(likely_rows, np.zeros(-likely_rows.size % _ROWS_PER_BLOCK, likely_rows.dtype))
        scores, probabilities, posterior = (
            np.asarray(leaf)[rows] for leaf in (self.scores, self.probabilities, self.posterior)
        )
        probabilities[likely_rows.size :] = 0.0
        return Prompts(*map(jnp.asarray, (scores, probabilities, posterior)))

    @public
    def weight_averages(self, activation: Activation, slope: float | Float[Array, ""]) -> Float[Array, "2"]:
        """Return `E s_ε` and `E Σ s²` of the weights of the scores `slope · χ*`.

        Args:
          activation: the activation.
          slope: the slope c, shape ().

        Returns:
          The two averages, shape (2,).

        Transformations: jit, vmap, grad.
        """
        return _averages(self, activation, slope)


@jax.jit
def _reweight(
    probabilities: Float[Array, " n"], log_ratio: Float[Array, "n L"]
) -> tuple[Float[Array, " n"], Float[Array, "n L"]]:
    return probabilities * jnp.mean(jnp.exp(log_ratio), axis=1), jax.nn.softmax(log_ratio, axis=1)


@public
def best_key_slope(activation: Activation, prompts: list[Prompts]) -> float:
    """Return the slope c of the head `k = c k*` of least risk, with v along v* and of the best length.

    The risk is that on prompts that are of any of the given kinds with equal probability.

    Args:
      activation: the activation.
      prompts: the kinds of prompts.

    Returns:
      The slope, to about 1e-4 of itself, so that the risk there is the least one to about 1e-8; of several valleys
      that
      which a lattice of slopes between 1e-5 and 30 finds lowest.

    Raises:
      ValueError: if float64 is off.
    """
    require_float64("best_key_slope", prompts[0].scores)
    likely_prompts = [kind.without_unlikely_rows() for kind in prompts]

    def risk(log_slope: float) -> float:
        return float(mixed_risk(activation, np.exp(log_slope), likely_prompts))

    slopes = np.linspace(np.log(_SMALLEST_SLOPE), np.log(_LARGEST_SLOPE), _SLOPE_COUNT)
    lowest = int(np.argmin([risk(slope) for slope in slopes]))
    bounds = slopes[max(lowest - 1, 0)], slopes[min(lowest + 1, slopes.size - 1)]
    minimum = minimize_scalar(risk, bounds=bounds, method="bounded", options={"xatol": 1e-5})
    return np.exp(minimum.x)  # pyright: ignore[reportAttributeAccessIssue]


@public
@jax.jit
def mixed_risk(activation: Activation, slope: float | Float[Array, ""], kinds: list[Prompts]) -> Float[Array, ""]:
    """Return the risk of one head on prompts that are of any of these kinds with equal probability.

    Args:
      activation: the activation.
      slope: the slope c of the head `k = c k*`, shape (); v is along v* and of the best length.
      kinds: the kinds of prompts.

    Returns:
      The risk, shape (), absolute error as for `ScoreLattice`.

    Transformations: jit, vmap, grad.
    """
    hidden, power = jnp.mean(jnp.stack([kind.weight_averages(activation, slope) for kind in kinds]), axis=0)
    return optimal_risk(hidden, power)


@jax.jit
def _averages(prompts: Prompts, activation: Activation, slope) -> Float[Array, "2"]:
    weights = activation.weights(slope * prompts.scores)
    hidden, power = jnp.sum(prompts.posterior * weights, axis=1), jnp.sum(weights**2, axis=1)
    return jnp.stack([prompts.probabilities @ hidden, prompts.probabilities @ power])
