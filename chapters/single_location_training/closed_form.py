"""The risks of heads on prompts of real tokens, beside the risks that their overlaps predict."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float, PRNGKeyArray

from lib.batching import map_batched
from lib.single_location import Head, Overlaps, SphereTask, erf_risk, overlaps_on_sphere, random_head
from lib.statistics import standard_error

SHARPNESS = 0.5
# Of one head alone the overlaps that the alternative exchanges may happen to be alike.
HEADS = 4


@dataclass(frozen=True)
class RealPrompts:
    """Heads with large overlaps on real prompts, and the risks that their overlaps predict.

    `flipped` are the predictions for value vectors whose overlaps with k* and v* were exchanged.
    """

    errors: Float[np.ndarray, "heads prompts"]
    predicted: Float[np.ndarray, " heads"]
    flipped: Float[np.ndarray, " heads"]

    def deviations(self, risks: Float[np.ndarray, " heads"]) -> Float[np.ndarray, " heads"]:
        """How far the mean errors are from `risks`, in their standard errors."""
        return np.abs(self.errors.mean(axis=1) - risks) / standard_error(self.errors, axis=1)


def try_closed_form(task: SphereTask, prompts: int, *, key: PRNGKeyArray) -> RealPrompts:
    """The risks of random heads with large overlaps, each on real prompts of its own and from its overlaps."""
    tried = [_try_head(task, prompts, key=each) for each in jr.split(key, HEADS)]
    return RealPrompts(*(np.stack(column) for column in zip(*tried, strict=True)))


def _try_head(
    task: SphereTask, prompts: int, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, " prompts"], float, float]:
    head_key, token_key = jr.split(key)
    head = random_head(4, key=head_key)
    k, v = (jnp.zeros(task.dimension).at[:4].set(vector) for vector in (head.key, head.value))
    errors = np.asarray(real_errors(task, Head(k, v), prompts, key=token_key))
    predicted, flipped = (
        float(erf_risk(task, overlaps_on_sphere(Head(head.key, value)), jnp.asarray(SHARPNESS)))
        for value in (head.value, head.value[jnp.asarray([1, 0, 2, 3])])
    )
    return errors, predicted, flipped


@dataclass(frozen=True)
class Least:
    """Risks of flat erf-attention on the manifold: with k and v in place, and with either of them off by an angle."""

    angle: float
    none: float
    key: float
    value: float


def least_risks(task: SphereTask, sharpness: float, angle: float) -> Least:
    """With both vectors in place, and with k or v at an angle, in degrees, to where it should be."""
    off = float(np.cos(np.radians(angle)))

    def at(key: float, value: float) -> float:
        overlaps = Overlaps(m_k=key, q_k=1.0, m_v=value, q_v=1.0)
        return float(erf_risk(task, jax.tree.map(jnp.asarray, overlaps), jnp.asarray(sharpness)))

    return Least(angle, at(1.0, 1.0), at(off, 1.0), at(1.0, off))


def real_errors(task: SphereTask, head: Head, prompts: int, *, key: PRNGKeyArray) -> Float[Array, " prompts"]:
    """Squared errors over γ² of erf-attention on prompts of real tokens, k* and v* being the first two axes."""
    spreads = jnp.ones(task.length).at[0].set(np.sqrt(task.variance))

    def one(index):
        tokens = spreads[:, None] * jr.normal(jr.fold_in(key, index), (task.length, task.dimension))
        tokens = tokens.at[0, 0].add(task.signal)
        weights = erf(SHARPNESS * tokens @ head.key)
        return (tokens[0, 1] - weights @ (tokens @ head.value)) ** 2 / task.variance

    return map_batched(one, jnp.arange(prompts), size=task.length * task.dimension)
