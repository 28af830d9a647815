"""Prompts of a few tokens by brute force: sums over all their scores on a lattice, for any task and any weights.

A task is a likelihood ratio `g(ε, χ*)` [D26]: the joint density of the hidden index and the scores, relative to a
uniform ε and independent standard normal χ*. Laplace's identity (`moments`) applies only if tokens are independent of
each other; a lattice works for every task, for up to three tokens.
"""

import functools
import itertools
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from lib._checks import public, require_count, require_float64
from lib.single_location.activations import Activation, _optimal_risk

# Where scores end, in standard deviations.
_LARGEST_SCORE = 8.0
# The chance of a row of scores that a search leaves out, and how many rows it keeps or adds at once.
_SMALLEST_PROBABILITY, _ROWS_PER_BLOCK = 1e-13, 2**13
# The flattest and the steepest heads that are looked at, and how many between.
_SMALLEST_SLOPE, _LARGEST_SLOPE, _SLOPE_COUNT = 1e-5, 30.0, 13


@functools.lru_cache(maxsize=8)
def _score_lattice(length: int, step: float, shift: float) -> tuple[Float[np.ndarray, "n L"], Float[np.ndarray, " n"]]:
    """Return L scores in decreasing order, and the probability that standard normal scores are these, in any order."""
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
    return axis[nodes.T], orders * np.prod(density[nodes], axis=0)


class Prompts(eqx.Module):
    """Prompts of a few tokens of a task, on a lattice of scores.

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
    def of(
        cls,
        log_ratio: Callable[[Float[Array, "n L"]], Float[Array, "n L"]],
        length: int,
        *,
        step: float = 0.1,
        shift: float = 0.0,
    ) -> "Prompts":
        """Return the prompts of the task with this likelihood ratio.

        The lattice is a trapezoid: averages of functions that are analytic in a strip of width a about each axis are
        wrong by `e^{-2πa/step}`. With the default step, averages over the posterior of a signal of strength ν ≤ 10
        (spiked) or ν ≤ 4 (max) and over weights of slopes up to 4 have an absolute error below 1e-9 if `shift` is large
        enough; the step must shrink in proportion for larger slopes.

        Args:
          log_ratio: maps scores to `log g(l, χ*)` for every row of scores and every token l, shape (n, L).
          length: number L of tokens.
          step: distance of the nodes of the lattice.
          shift: the scores reach from -8 to 8 + shift standard deviations; s for a task that shifts a score by s.

        Returns:
          The prompts.

        Raises:
          ValueError: if `length` is not a whole number ≥ 1.
        """
        length = require_count("Prompts.of", "length", length, "an empty prompt defines no probability measure.")
        scores, probabilities = map(jnp.asarray, _score_lattice(length, step, shift))
        return cls(scores, *_reweight(probabilities, log_ratio(scores)))

    @public
    @eqx.filter_jit
    def bayes_risk(self) -> Float[Array, ""]:
        """Return `1 - E Σ p²`, p the posterior.

        Returns:
          The risk, shape (), absolute error as for `Prompts.of`.

        Source: [D26]. Transformations: jit, vmap, grad.
        """
        return 1.0 - self.probabilities @ jnp.sum(self.posterior**2, axis=1)

    @staticmethod
    @public
    def best_key_risk(
        activation: Activation, prompts: "list[Prompts]", refined: "list[Prompts] | None" = None
    ) -> tuple[float, float]:
        """Return the slope c of the head `k = c k*` of least risk, v along v* and of the best length, and its risk.

        The risk is that on prompts that are of any of the given kinds with equal probability.

        Args:
          activation: the activation.
          prompts: the kinds of prompts on which c is searched.
          refined: the same kinds on finer lattices, on which the risk is computed; `prompts` by default.

        Returns:
          The slope, to about 1e-4 of itself, so that the risk there is the least one to about 1e-8, in the valley that
          is the lowest on a lattice of slopes between 1e-5 and 30; and the risk, absolute error as for `Prompts.of`.

        Raises:
          ValueError: if float64 is off.
        """
        require_float64("Prompts.best_key_risk", prompts[0].scores)
        likely_prompts = [kind._without_unlikely_rows() for kind in prompts]

        def risk(log_slope: float) -> float:
            return float(_mixed_risk(activation, np.exp(log_slope), likely_prompts))

        slopes = np.linspace(np.log(_SMALLEST_SLOPE), np.log(_LARGEST_SLOPE), _SLOPE_COUNT)
        lowest = int(np.argmin([risk(slope) for slope in slopes]))
        bounds = slopes[max(lowest - 1, 0)], slopes[min(lowest + 1, slopes.size - 1)]
        minimum = minimize_scalar(risk, bounds=bounds, method="bounded", options={"xatol": 1e-5})
        slope = float(np.exp(minimum.x))  # pyright: ignore[reportAttributeAccessIssue]
        return slope, float(_mixed_risk(activation, slope, prompts if refined is None else refined))

    def _without_unlikely_rows(self) -> "Prompts":
        """Return the prompts without rows of a probability below 1e-13, padded to whole blocks for few compilations."""
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


@jax.jit
def _mixed_risk(activation: Activation, slope: float | Float[Array, ""], kinds: list[Prompts]) -> Float[Array, ""]:
    """Return the risk of the head of slope c on prompts that are of any of these kinds with equal probability."""
    hidden, power = jnp.mean(jnp.stack([kind.weight_averages(activation, slope) for kind in kinds]), axis=0)
    return jnp.asarray(_optimal_risk(hidden, power))


@jax.jit
def _averages(prompts: Prompts, activation: Activation, slope) -> Float[Array, "2"]:
    weights = activation.weights(slope * prompts.scores)
    hidden, power = jnp.sum(prompts.posterior * weights, axis=1), jnp.sum(weights**2, axis=1)
    return jnp.stack([prompts.probabilities @ hidden, prompts.probabilities @ power])
