"""Risks of erf attention on simulated prompts, and the risks that the overlaps of the heads predict."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.single_location_training.sphere_descent import SphereTask, erf_risk, overlaps_on_sphere, random_head
from lib.batching import map_batched
from lib.single_location import Head, Overlaps
from lib.statistics import standard_error

SHARPNESS = 0.5
# The overlaps that the alternative exchanges may be nearly equal in a single head.
HEADS = 4


@dataclass(frozen=True)
class SimulatedRisks:
    """Squared errors of random heads on simulated prompts, and the risks that their overlaps predict.

    `flipped` holds the predictions for value vectors whose overlaps with k* and v* are exchanged.
    """

    errors: Float[np.ndarray, "heads prompts"]
    predicted: Float[np.ndarray, " heads"]
    flipped: Float[np.ndarray, " heads"]

    def deviations(self, risks: Float[np.ndarray, " heads"]) -> Float[np.ndarray, " heads"]:
        """Return the distances of the mean errors from `risks`, in standard errors."""
        return np.abs(self.errors.mean(axis=1) - risks) / standard_error(self.errors, axis=1)


def simulate_random_heads(task: SphereTask, prompts: int, *, key: PRNGKeyArray) -> SimulatedRisks:
    """Return squared errors of random heads with large overlaps on simulated prompts, and the predicted risks.

    Args:
      task: the task on the sphere.
      prompts: number of prompts per head; each head has separate prompts.
      key: the random key.
    """
    tried = [_simulate_head(task, prompts, key=each) for each in jr.split(key, HEADS)]
    return SimulatedRisks(*(np.stack(column) for column in zip(*tried, strict=True)))


def _simulate_head(
    task: SphereTask, prompts: int, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, " prompts"], float, float]:
    head_key, token_key = jr.split(key)
    head = random_head(4, key=head_key)
    k, v = (jnp.zeros(task.dimension).at[:4].set(vector) for vector in (head.key, head.value))
    errors = np.asarray(simulate_errors(task, Head(k, v), prompts, key=token_key))
    predicted, flipped = (
        _exact_risk(task, overlaps_on_sphere(Head(head.key, value)), SHARPNESS)
        for value in (head.value, head.value[jnp.asarray([1, 0, 2, 3])])
    )
    return errors, predicted, flipped


def _exact_risk(task: SphereTask, overlaps: Overlaps, sharpness: float) -> float:
    """Return `erf_risk`, compiled once for all overlaps and λ."""
    return float(_compiled_risk(task, *jax.tree.map(jnp.float64, (overlaps, sharpness))))


_compiled_risk = eqx.filter_jit(erf_risk)


@dataclass(frozen=True)
class AngleRisks:
    """Risks of erf attention on the manifold: with k = k* and v = v*, and with one turned by `angle` degrees."""

    angle: float
    none: float
    key: float
    value: float


def solve_angle_risks(task: SphereTask, sharpness: float, angle: float) -> AngleRisks:
    """Return the risks with k = k* and v = v*, and with k or v turned away from it by `angle` degrees."""
    off = float(np.cos(np.radians(angle)))

    def at(key: float, value: float) -> float:
        overlaps = Overlaps(m_k=key, q_k=1.0, m_v=value, q_v=1.0)
        return _exact_risk(task, overlaps, sharpness)

    return AngleRisks(angle, at(1.0, 1.0), at(off, 1.0), at(1.0, off))


def simulate_errors(task: SphereTask, head: Head, prompts: int, *, key: PRNGKeyArray) -> Float[Array, " prompts"]:
    """Return squared errors of erf attention on simulated prompts, in units of γ²; k* and v* are the first two axes."""
    spreads = jnp.ones(task.length).at[0].set(np.sqrt(task.variance))

    def one(index):
        tokens = spreads[:, None] * jr.normal(jr.fold_in(key, index), (task.length, task.dimension))
        tokens = tokens.at[0, 0].add(task.signal)
        weights = erf(SHARPNESS * tokens @ head.key)
        return (tokens[0, 1] - weights @ (tokens @ head.value)) ** 2 / task.variance

    return map_batched(one, jnp.arange(prompts), size=task.length * task.dimension)
