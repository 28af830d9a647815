"""State evolution: what an iteration of message passing does to the estimates of k* and v* in the limit D → ∞.

k* and v* have Gaussian priors, and the estimator knows the model. By the Nishimori identity an overlap with the truth
equals a squared norm, so two numbers, `q_k` and `q_v`, describe the posterior. `lib.single_location.bayes_optimal_risk`
is the risk at the end of the evolution from a start without knowledge; here are its passes, its ends from any start
with their standard errors, and the free entropy, which says which of two ends is that of the best estimator [D26].
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

from lib.single_location import Spiked, bayes_risk

# Quasi-random points of one set, and number of sets: of the passes, and of an end, whose standard error is the scatter
# between sets. The error is itself uncertain by 40 % with four sets, and by 18 % with sixteen.
POINTS, PASS_SETS, SETS = 4096, 4, 16
# The evolution ends where no overlap changes by more than this, or after so many passes.
_CHANGE_TOLERANCE, _LARGEST_STEPS = 1e-8, 3000
# Where a pass changes both overlaps by less, Newton's method replaces plain passes. Where one changes by more than the
# second value, far from any end, a pass needs one set of points only.
_NEWTON_THRESHOLD, _FAR_FROM_ENDS = 1e-3, 1e-2
# The largest ratio of successive changes of Newton's method at which it keeps its slope.
_FAST = 0.1
# The logarithm of a weight that changes no sum; processors are slow with the subnormal numbers below.
_SMALLEST_LOG_WEIGHT = -700.0
# Step of central differences, relative to the distance of an overlap from 0 and 1: their error is about its square.
_DIFFERENCE = 1e-4

Overlaps = Float[np.ndarray, "2"]


class Evolution(NamedTuple):
    """Overlaps of posterior means with k* and v*, and the excess risk of the predictor that uses them, after a pass."""

    q_k: Float[np.ndarray, "*passes"]
    q_v: Float[np.ndarray, "*passes"]
    risk: Float[np.ndarray, "*passes"]


class FixedPoint(NamedTuple):
    """The end of the evolution from one start, and the free entropy there, per dimension.

    Attributes:
      end: overlaps and risk at the end.
      free_entropy: the free entropy. Of several ends the one of the largest is that of the Bayes-optimal estimator.
      std_error: standard error of the risk: the scatter, to first order, of the ends that the `SETS` independently
        scrambled sets of points would have, divided by √`SETS`. It grows with the time that the evolution needs to
        reach an end.
      free_entropies: those of the single sets at this end. All ends are found on the same sets, so the scatter of
        differences is the error with which two ends are compared.
    """

    end: Evolution
    free_entropy: float
    std_error: float
    free_entropies: Float[np.ndarray, " sets"]


@dataclass(frozen=True)
class PromptAverage:
    """Averages over prompts of the spiked model that the evolution needs, on fixed standard normals [D26].

    The first axis of `scores`, `values` and `noise` is that of the sets of points; a set fits into the cache.
    """

    noise_std: float
    alpha: float
    strength: float
    scores: Float[np.ndarray, "sets L points"]
    values: Float[np.ndarray, "sets L points"]
    noise: Float[np.ndarray, "sets points"]

    @classmethod
    def of(cls, task: Spiked, *, noise_std: float, alpha: float, points: int, sets: int) -> "PromptAverage":
        """Return the averages at one sample ratio α."""
        scores, values, noise = _quasi_normals(int(task.length), points, sets)
        return cls(noise_std, alpha, float(task.snr) ** 0.5, scores, values, noise)

    def residuals(self, q_v: float, number: int) -> tuple[Float[np.ndarray, "L points"], float]:
        """Return `y - ω_v` of every token of a set, and the variance `T = Δ² + 1 - q_v` of that of the hidden token."""
        means = np.sqrt(q_v) * self.values[number]
        variance = self.noise_std**2 + 1.0 - q_v
        return means[0] + np.sqrt(variance) * self.noise[number] - means, variance

    def log_weights(self, q_k: float, residuals: np.ndarray, variance: float, number: int) -> np.ndarray:
        """Return the logarithms of the posterior weights up to a constant, the hidden token first.

        The first term is `√ν ω_k`, the scores by the estimate of k*.
        """
        exponents = (self.strength * np.sqrt(q_k)) * self.scores[number]
        exponents[0] += self.strength**2 * q_k
        exponents -= (0.5 / variance) * residuals**2
        return exponents

    def gains(self, overlaps: Overlaps, sets: int | None = None) -> Float[np.ndarray, "sets 2"]:
        """Return what prompts add to the two precisions at these overlaps, by set of points, for the first `sets`.

        By the Nishimori identity the gain in precision of k* is the mean posterior weight of the hidden token.
        """
        q_k, q_v = overlaps
        gains = []
        for number in range(len(self.noise) if sets is None else sets):
            residuals, variance = self.residuals(q_v, number)
            weights = self.log_weights(q_k, residuals, variance, number)
            weights -= weights.max(axis=0)
            np.exp(np.maximum(weights, _SMALLEST_LOG_WEIGHT), out=weights)
            totals = weights.sum(axis=0)
            hidden_weight = (weights[0] / totals).mean()
            weights *= residuals
            squared_residual = (np.einsum("lp,lp->p", weights, weights) / totals**2).mean() / variance**2
            gains.append((self.alpha * self.strength**2 * hidden_weight, self.alpha * squared_residual))
        return np.asarray(gains)

    def step(self, overlaps: Overlaps, sets: int | None = None) -> Overlaps:
        """Return the overlaps after one pass: with what prompts teach at these overlaps."""
        return _overlaps(self.gains(overlaps, sets).mean(axis=0))

    def slope(self, overlaps: Overlaps) -> Float[np.ndarray, "2 2"]:
        """Return the derivatives of one pass with respect to the overlaps before it."""
        return _derivatives(self.step, overlaps)

    def risk(self, overlaps: Overlaps) -> float:
        """Return `1 - q_v (1 - E_Bayes(ν q_k))`, the excess risk on a fresh prompt."""
        q_k, q_v = overlaps
        return 1.0 - q_v + q_v * _bayes_risk(float(self.scores.shape[1]), float(self.strength**2 * q_k))

    def entropies(self, overlaps: Overlaps) -> Float[np.ndarray, " sets"]:
        """Return what every set of points gives for the free entropy, which is their mean."""
        q_k, q_v = overlaps
        evidence = []
        for number in range(len(self.noise)):
            residuals, variance = self.residuals(q_v, number)
            weights = self.log_weights(q_k, residuals, variance, number) - 0.5 * self.strength**2 * q_k
            evidence.append(np.logaddexp.reduce(weights, axis=0).mean() - 0.5 * np.log(2 * np.pi * variance))
        constant = 0.5 * float(np.sum(overlaps + np.log1p(-overlaps)))
        return constant + self.alpha * (np.asarray(evidence) - np.log(self.scores.shape[1]))


def state_evolution(
    task: Spiked, *, noise_std: float, alpha: float, start_overlap: float, iterations: int
) -> Evolution:
    """Return the first passes from equal overlaps of k* and v*, the start itself not included.

    Iteration t of undamped message passing has these overlaps in the limit D → ∞ (heuristic, as all of message passing
    with an unknown key is).
    """
    average = PromptAverage.of(task, noise_std=noise_std, alpha=alpha, points=POINTS, sets=PASS_SETS)
    passes = [np.full(2, start_overlap)]
    for _ in range(iterations):
        passes.append(average.step(passes[-1]))
    q_k, q_v = np.transpose(passes[1:])
    return Evolution(q_k, q_v, np.array([average.risk(overlaps) for overlaps in passes[1:]]))


def fixed_point(
    task: Spiked, *, noise_std: float, alpha: float, start_overlap: float, points: int = POINTS
) -> FixedPoint:
    """Return the end of the evolution from overlaps `start_overlap`: small without knowledge, near 1 with it.

    Where both ends differ and the informed one has the larger free entropy, the phase is hard: a better estimator
    exists than message passing finds. `points` is the size $2^k$ of one set of quasi-random points; the standard error
    falls like `points^-0.75` or a little faster, and the time grows like points. The error does not cover a wrong end:
    very near a sample ratio at which the end vanishes, other points could find the other end.
    """
    average = PromptAverage.of(task, noise_std=noise_std, alpha=alpha, points=points, sets=SETS)
    overlaps = _end(average, np.full(2, start_overlap))
    entropies = average.entropies(overlaps)
    end = Evolution(*overlaps, average.risk(overlaps))
    return FixedPoint(end, float(entropies.mean()), _std_error(average, overlaps), entropies)


@lru_cache(maxsize=8)
def _quasi_normals(length: int, points: int, sets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standard normals for scores, values and labels from Sobol sequences, each set scrambled independently."""
    from scipy.stats import qmc  # takes a second to import

    uniforms = np.stack([qmc.Sobol(2 * length + 1, rng=seed).random(points) for seed in range(sets)])
    normals = ndtri(np.clip(uniforms, 2.0**-53, 1.0 - 2.0**-53)).transpose(0, 2, 1).copy()
    return normals[:, :length], normals[:, length:-1], normals[:, -1]


@lru_cache(maxsize=8)
def _bayes_risk(length: float, snr: float) -> float:
    return float(bayes_risk(Spiked(length, snr)))


def _overlaps(precision: Float[np.ndarray, "... 2"]) -> Float[np.ndarray, "... 2"]:
    """Return the overlaps of posterior means to whose precisions prompts add so much."""
    return precision / (1.0 + precision)


def _derivatives(function: Callable[[Overlaps], Any], overlaps: Overlaps) -> np.ndarray:
    """Return the derivatives of a function of the two overlaps, along a last axis, by central differences."""
    steps = np.diag(_DIFFERENCE * np.minimum(overlaps, 1.0 - overlaps))
    return np.stack([(function(overlaps + h) - function(overlaps - h)) / (2 * h.sum()) for h in steps], axis=-1)


def _end(average: PromptAverage, overlaps: Overlaps) -> Overlaps:
    """Return the end that the evolution reaches.

    The last, slow passes are replaced by steps of Newton's method. These are taken only where the slope of a pass is
    that of an end that attracts: a narrow passage that leads to another end is left as the evolution leaves it.
    """
    change, sets, slope, previous = np.inf, 1, None, np.inf
    for _ in range(_LARGEST_STEPS):
        sets = sets if change > _FAR_FROM_ENDS else None
        new = average.step(overlaps, sets)
        if change < _NEWTON_THRESHOLD:
            # a slope is kept while changes shrink fast; the first change after a new slope is not compared
            if slope is None or change > _FAST * previous:
                slope, change = average.slope(overlaps), np.inf
            system = np.eye(2) - slope
            if np.trace(slope) < 2.0 and np.linalg.det(system) > 0.0:
                end = overlaps + np.linalg.solve(system, new - overlaps)
                new = end if np.all((end > 0.0) & (end < 1.0)) else new
        # without a signal prompts add no precision, and √0 has no slope
        new = np.maximum(new, np.finfo(float).tiny / _DIFFERENCE)
        overlaps, change, previous = new, np.abs(new - overlaps).max(), change
        if change <= _CHANGE_TOLERANCE:
            break
    return overlaps


def _std_error(average: PromptAverage, overlaps: Overlaps) -> float:
    """Return the standard error of the risk at an end, from what each set of points changes to first order.

    A set that moves the overlaps of one pass by δ moves the end by `(I - slope)⁻¹ δ`. The risk at given overlaps does
    not depend on the points.
    """
    moved = _overlaps(average.gains(overlaps)) - overlaps
    shifts = np.linalg.solve(np.eye(2) - average.slope(overlaps), moved.T)
    return float(np.std(_derivatives(average.risk, overlaps) @ shifts, ddof=1)) / SETS**0.5
