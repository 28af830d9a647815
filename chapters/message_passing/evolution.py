"""State evolution: what an iteration of message passing does to the estimates of k* and v* in the limit D → ∞.

k* and v* have Gaussian priors, and the estimator knows the model. By the Nishimori identity an overlap with the truth
equals a squared norm, so two numbers, `q_k` and `q_v`, describe the posterior. `lib.single_location.bayes_optimal_risk`
is the risk at the end of the evolution from a start without knowledge; here are its passes, its ends from any start
with their standard errors, and the free entropy, which says which of two ends is that of the best estimator [D26].
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import logsumexp, softmax
from jaxtyping import Array, Float
from scipy.special import ndtri

from lib.single_location import Spiked, bayes_risk

# Quasi-random points of one set, and number of sets: of the passes, and of an end, whose standard error is the scatter
# between sets. The error is itself uncertain by 40 % with four sets, and by 18 % with sixteen.
POINTS, PASS_SETS, SETS = 4096, 4, 16
# Smallest signal strength: at 0 a square root has no finite slope.
_SMALLEST_SIGNAL = 1e-300
# The evolution ends where no overlap changes by more than this, or after so many passes.
_CHANGE_TOLERANCE, _LARGEST_STEPS = 1e-8, 3000
# Where a pass changes both overlaps by less, Newton's method replaces plain passes.
_NEWTON_THRESHOLD = 1e-3


class Evolution(NamedTuple):
    """Overlaps of posterior means with k* and v*, and the excess risk of the predictor that uses them, after a pass."""

    q_k: Float[Array, "*passes"]
    q_v: Float[Array, "*passes"]
    risk: Float[Array, "*passes"]


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
    free_entropy: Float[Array, ""]
    std_error: Float[Array, ""]
    free_entropies: Float[Array, " sets"]


class PromptAverage(eqx.Module):
    """Averages over prompts of the spiked model that the evolution needs, on fixed standard normals [D26]."""

    noise_std: Float[Array, ""]
    alpha: Float[Array, ""]
    strength: Float[Array, ""]
    scores: Float[Array, "points L"]
    values: Float[Array, "points L"]
    noise: Float[Array, " points"]

    @classmethod
    def of(cls, task: Spiked, *, noise_std: float, alpha: float, points: int, sets: int) -> "PromptAverage":
        """Return the averages at one sample ratio α."""
        normals = np.concatenate(_quasi_normals(2 * int(task.length) + 1, points, sets))
        scores, values = np.split(normals[:, :-1], 2, axis=1)
        drawn = (noise_std, alpha, jnp.sqrt(task.snr), scores, values, normals[:, -1])
        return cls(*(jnp.asarray(each, float) for each in drawn))

    def residuals(self, q_v: Float[Array, ""]) -> tuple[Float[Array, "points L"], Float[Array, ""]]:
        """Return `y - ω_v` of every token, and the variance `T = Δ² + 1 - q_v` of that of the hidden token."""
        means = jnp.sqrt(q_v) * self.values
        variance = self.noise_std**2 + 1.0 - q_v
        return (means[:, 0] + jnp.sqrt(variance) * self.noise)[:, None] - means, variance

    def estimated_scores(self, q_k: Float[Array, ""]) -> Float[Array, "points L"]:
        """Return `√ν ω_k`, the scores by the estimate of k*, the hidden token first."""
        return self.strength * (jnp.sqrt(q_k) * self.scores).at[:, 0].add(self.strength * q_k)

    def step(self, overlaps: Float[Array, " 2"]) -> Float[Array, " 2"]:
        """Return the overlaps after one pass: with what prompts teach at these overlaps.

        By the Nishimori identity the gain in precision of k* is the mean posterior weight of the hidden token.
        """
        q_k, q_v = overlaps
        residuals, variance = self.residuals(q_v)
        posterior = softmax(self.estimated_scores(q_k) - 0.5 * residuals**2 / variance, axis=1)
        hidden_weight = jnp.mean(posterior[:, 0])
        squared_residual = jnp.mean(jnp.sum((posterior * residuals) ** 2, axis=1)) / variance**2
        precision = self.alpha * jnp.stack([self.strength**2 * hidden_weight, squared_residual])
        return precision / (1.0 + precision)

    def slope(self, overlaps: Float[Array, " 2"]) -> Float[Array, "2 2"]:
        """Return the derivatives of one pass with respect to the overlaps before it."""
        return jax.jacfwd(self.step)(overlaps)

    def risk(self, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
        """Return `1 - q_v (1 - E_Bayes(ν q_k))`, the excess risk on a fresh prompt."""
        q_k, q_v = overlaps
        signal = jnp.maximum(self.strength**2 * q_k, _SMALLEST_SIGNAL)
        return 1.0 - q_v + q_v * bayes_risk(Spiked(float(self.scores.shape[1]), signal))

    def entropies(self, overlaps: Float[Array, " 2"]) -> Float[Array, " points"]:
        """Return what every point contributes to the free entropy, which is their mean."""
        q_k, q_v = overlaps
        residuals, variance = self.residuals(q_v)
        exponents = self.estimated_scores(q_k) - 0.5 * self.strength**2 * q_k - 0.5 * residuals**2 / variance
        evidence = logsumexp(exponents, axis=1) - jnp.log(residuals.shape[1]) - 0.5 * jnp.log(2 * jnp.pi * variance)
        return 0.5 * jnp.sum(overlaps + jnp.log1p(-overlaps)) + self.alpha * evidence


def state_evolution(
    task: Spiked, *, noise_std: float, alpha: float, start_overlap: float, iterations: int
) -> Evolution:
    """Return the first passes from equal overlaps of k* and v*, the start itself not included.

    Iteration t of undamped message passing has these overlaps in the limit D → ∞ (heuristic, as all of message passing
    with an unknown key is).
    """
    average = PromptAverage.of(task, noise_std=noise_std, alpha=alpha, points=POINTS, sets=PASS_SETS)
    return _passes(average, jnp.full(2, start_overlap), iterations)


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
    overlaps = _end(average, jnp.full(2, start_overlap))
    end = Evolution(overlaps[0], overlaps[1], _risk(average, overlaps))
    entropies = _entropies(average, overlaps).reshape(SETS, points).mean(axis=1)
    return FixedPoint(end, entropies.mean(), _std_error(average, overlaps), entropies)


@lru_cache(maxsize=8)
def _quasi_normals(dimension: int, points: int, sets: int) -> Float[np.ndarray, "sets points dimension"]:
    """Return standard normals from Sobol sequences, each set scrambled independently (Owen)."""
    from scipy.stats import qmc  # takes a second to import

    uniforms = np.stack([qmc.Sobol(dimension, rng=seed).random(points) for seed in range(sets)])
    return ndtri(np.clip(uniforms, 2.0**-53, 1.0 - 2.0**-53))


_risk, _entropies = eqx.filter_jit(PromptAverage.risk), eqx.filter_jit(PromptAverage.entropies)


@eqx.filter_jit
def _passes(average: PromptAverage, start: Float[Array, " 2"], count: int) -> Evolution:
    def step(overlaps, _):
        new = average.step(overlaps)
        return new, Evolution(new[0], new[1], average.risk(new))

    return jax.lax.scan(step, start, None, length=count)[1]


@eqx.filter_jit
def _end(average: PromptAverage, start: Float[Array, " 2"]) -> Float[Array, " 2"]:
    """Return the end that the evolution reaches.

    The last, slow passes are replaced by steps of Newton's method. These are taken only where the slope of a pass is
    that of an end that attracts: a narrow passage that leads to another end is left as the evolution leaves it.
    """

    def plain(overlaps):
        return average.step(overlaps)

    def newton(overlaps):
        new, slope = plain(overlaps), average.slope(overlaps)
        system = jnp.eye(2) - slope
        end = overlaps + jnp.linalg.solve(system, new - overlaps)
        attracts = (jnp.trace(slope) < 2.0) & (jnp.linalg.det(system) > 0.0)
        return jnp.where(attracts & jnp.all((end > 0.0) & (end < 1.0)), end, new)

    def step(carry):
        overlaps, change, steps = carry
        new = jax.lax.cond(change < _NEWTON_THRESHOLD, newton, plain, overlaps)
        # without a signal prompts add no precision, and √0 has no slope
        new = jnp.maximum(new, jnp.finfo(new.dtype).tiny)
        return new, jnp.max(jnp.abs(new - overlaps)), steps + 1

    def unsettled(carry):
        return (carry[1] > _CHANGE_TOLERANCE) & (carry[2] < _LARGEST_STEPS)

    return jax.lax.while_loop(unsettled, step, (start, jnp.asarray(jnp.inf), jnp.asarray(0)))[0]


@eqx.filter_jit
def _std_error(average: PromptAverage, overlaps: Float[Array, " 2"]) -> Float[Array, ""]:
    """Return the standard error of the risk at an end, from what each set of points changes to first order.

    A set that moves the overlaps of one pass by δ moves the end by `(I - slope)⁻¹ δ`. The risk at given overlaps does
    not depend on the points.
    """

    def of_set(scores, values, noise):
        return replace(average, scores=scores, values=values, noise=noise).step(overlaps)

    sets = (leaf.reshape(SETS, -1, *leaf.shape[1:]) for leaf in (average.scores, average.values, average.noise))
    shifts = jnp.linalg.solve(jnp.eye(2) - average.slope(overlaps), (jax.vmap(of_set)(*sets) - overlaps).T)
    return jnp.std(jax.grad(average.risk)(overlaps) @ shifts, ddof=1) / SETS**0.5
