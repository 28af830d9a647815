"""Prompts of a few tokens by brute force: sums over all their scores on a lattice, for any task and any weights.

A task is a likelihood ratio `g(ε, χ*)` [D26]: the joint density of the hidden index and the scores, relative to a
uniform ε and independent standard normal χ*. Laplace's identity (`_moments`) applies only if tokens are independent of
each other; a lattice works for every task, for up to three tokens.
"""

import functools
import itertools
import math
from collections.abc import Callable

import equinox as eqx
import numpy as np
from jaxtyping import Float
from numpy.polynomial import Chebyshev

from lib._checks import public, require_count, require_float64
from lib._namespace import constant, namespace
from lib._types import AnyArray, Scalar, Scalars
from lib.single_location.activations import Activation, _optimal_risk

# Where scores end, in standard deviations.
_LARGEST_SCORE = 8.0
# The total probability of the rows of scores that are left out.
_NEGLIGIBLE = 1e-10
# Logarithms of slopes that are compared first, from the flattest to the steepest head, and the number of those around
# the best one to which a polynomial is fitted.
_LOG_SLOPES, _FIT = np.linspace(np.log(1e-5), np.log(30.0), 13), 16


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
    # the scores of one token are next to each other in memory, for fast sums over the few tokens
    scores, probabilities = axis[nodes].T, orders * np.prod(density[nodes], axis=0)
    for array in (scores, probabilities):
        array.setflags(write=False)
    return scores, probabilities


class Prompts(eqx.Module):
    """Prompts of a few tokens of a task or of a stack of tasks, on a lattice of scores.

    Attributes:
      scores: scores of the tokens.
      probabilities: probability of each row of scores.
      posterior: posterior probability of each token to be the hidden one.
    """

    scores: Float[AnyArray, "n L"]
    probabilities: Float[AnyArray, "*stack n"]
    posterior: Float[AnyArray, "*stack n L"]

    @classmethod
    @public
    def of(
        cls,
        log_ratio: Callable[[Float[np.ndarray, "n L"]], Float[AnyArray, "*stack n L"]],
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
          log_ratio: maps scores, an array of NumPy, to `log g(l, χ*)` for every row of scores and every token l, shape
            (n, L); for a stack of tasks with leading axes. If it computes with NumPy, nothing is compiled.
          length: number L of tokens.
          step: distance of the nodes of the lattice.
          shift: the scores reach from -8 to 8 + shift standard deviations; s for a task that shifts a score by s.

        Returns:
          The prompts.

        Raises:
          ValueError: if `length` is not a whole number ≥ 1.
        """
        length = require_count("Prompts.of", "length", length, "an empty prompt defines no probability measure.")
        scores, probabilities = _score_lattice(length, step, shift)
        log_ratios = log_ratio(scores)
        xp = namespace(log_ratios)
        (largest,) = constant(xp.max(log_ratios, axis=-1, keepdims=True))
        ratios = xp.exp(log_ratios - largest)
        total = xp.sum(ratios, axis=-1, keepdims=True)
        mean_ratio = xp.exp(largest[..., 0]) * total[..., 0] / length
        return cls(scores, probabilities * mean_ratio, ratios / total)

    @public
    def bayes_risk(self) -> Scalars:
        """Return `1 - E Σ p²`, p the posterior.

        Returns:
          The risk, one per task, absolute error as for `Prompts.of`.

        Source: [D26]. Transformations: jit, vmap, grad.
        """
        squares = namespace(self.posterior).sum(self.posterior**2, axis=-1)
        return 1.0 - (self.probabilities * squares).sum(axis=-1)

    @staticmethod
    @public
    def best_key_risk(
        activation: Activation, prompts: "list[Prompts]", refined: "list[Prompts] | None" = None
    ) -> tuple[float, float]:
        """Return the slope c of the head `k = c k*` of least risk, v along v* and of the best length, and its risk.

        The risk is that on prompts that are of any of the given kinds with equal probability.

        Args:
          activation: the activation.
          prompts: the kinds of prompts of one task, on which c is searched.
          refined: the same kinds on finer lattices, on which the risk is computed; `prompts` by default.

        Returns:
          The slope, as `best_slopes` finds it; and the risk, absolute error as for `Prompts.of`.

        Raises:
          ValueError: if float64 is off.
        """
        slope = float(Prompts.best_slopes(activation, prompts))
        return slope, float(Prompts.risk(activation, slope, prompts if refined is None else refined))

    @staticmethod
    @public
    def best_slopes(activation: Activation, prompts: "list[Prompts]") -> Scalars:
        """Return for each task the slope c of the head `k = c k*` of least risk, v along v* and of the best length.

        A stack of tasks takes little more time than one task, because they share the weights at each slope.

        Args:
          activation: the activation.
          prompts: the kinds of prompts of each task, with equal probability.

        Returns:
          The slopes, to about 1e-4 of themselves, so that the risk there is the least one to about 1e-8, in the valley
          that is the lowest on a lattice of slopes between 1e-5 and 30.

        Raises:
          ValueError: if float64 is off.
        """
        require_float64("Prompts.best_slopes", prompts[0].posterior)
        likely_prompts = [kind._without_unlikely_rows() for kind in prompts]

        def risks(log_slopes: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n *stack"]:
            return np.stack([_mixed_risk(activation, slope, likely_prompts) for slope in np.exp(log_slopes)])

        lowest = np.argmin(risks(_LOG_SLOPES), axis=0)
        best = np.empty(lowest.shape)
        for index in np.unique(lowest):
            bracket = _LOG_SLOPES[[max(index - 1, 0), min(index + 1, _LOG_SLOPES.size - 1)]]
            nodes = bracket.mean() + np.ptp(bracket) / 2 * np.cos(np.pi * (np.arange(_FIT) + 0.5) / _FIT)
            values = np.moveaxis(risks(nodes), 0, -1)[lowest == index]
            best[lowest == index] = [_lowest_place(Chebyshev.fit(nodes, row, _FIT - 1, bracket)) for row in values]
        return np.exp(best)

    @staticmethod
    @public
    def risk(activation: Activation, slope: Scalar, prompts: "list[Prompts]") -> Scalars:
        """Return the risk of the head `k = c k*` with slope c, v along v* and of the best length.

        Args:
          activation: the activation.
          slope: the slope c, shape ().
          prompts: the kinds of prompts of each task, with equal probability.

        Returns:
          The risk of each task, absolute error as for `Prompts.of`.
        """
        return _mixed_risk(activation, slope, [kind._without_unlikely_rows() for kind in prompts])

    def _without_unlikely_rows(self) -> "Prompts":
        """Return the prompts without rows of scores whose probabilities add up to less than 1e-10."""
        rows = len(self.scores)
        likely = np.max(np.reshape(self.probabilities, (-1, rows)), axis=0) > _NEGLIGIBLE / rows
        scores, posterior = (
            np.compress(likely, np.swapaxes(leaf, -1, -2), axis=-1).swapaxes(-1, -2)
            for leaf in (self.scores, self.posterior)
        )
        return Prompts(scores, np.compress(likely, self.probabilities, axis=-1), posterior)

    @public
    def weight_averages(self, activation: Activation, slope: Scalar) -> Float[AnyArray, "2 *stack"]:
        """Return `E s_ε` and `E Σ s²` of the weights of the scores `slope · χ*`.

        Args:
          activation: the activation.
          slope: the slope c, shape ().

        Returns:
          The two averages, shape (2,), for each task.

        Transformations: jit, vmap, grad.
        """
        weights = activation.weights(slope * self.scores)
        xp = namespace(weights, self.posterior)
        hidden = xp.einsum("...n,...nl,nl->...", self.probabilities, self.posterior, weights)
        return xp.stack([hidden, self.probabilities @ xp.sum(weights**2, axis=-1)])


def _mixed_risk(activation: Activation, slope: Scalar, kinds: list[Prompts]) -> Scalars:
    """Return the risk of the head of slope c on prompts that are of any of these kinds with equal probability."""
    return _optimal_risk(*np.mean([kind.weight_averages(activation, slope) for kind in kinds], axis=0))


def _lowest_place(polynomial: Chebyshev) -> float:
    """Return the place in its domain at which a polynomial is least."""
    places = polynomial.deriv().roots()
    low, high = polynomial.domain
    candidates = np.append(polynomial.domain, np.clip(places[np.isreal(places)].real, low, high))
    return candidates[np.argmin(polynomial(candidates))]
