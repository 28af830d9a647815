"""Descent of a softmax head without projection, off the manifold of zero cross overlaps and on it."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.single_location_training.population_descent import HeadTrajectory, descend_population
from lib.single_location import Head, Overlaps, Spiked, softmax

# The task and the descent; the step size is in units of D.
LENGTH, SNR = 3, 4.0
STEP_SIZE, STEPS, EVERY = 0.03, 48, 4


@dataclass(frozen=True)
class Walk:
    """A descent from off the manifold with squared errors on simulated prompts, and one that starts on the manifold."""

    path: HeadTrajectory
    without_cross: Float[np.ndarray, " records"]
    errors: Float[np.ndarray, "records prompts"]
    on_manifold: Overlaps


def train_descents(dimension: int, prompts: int, *, key: PRNGKeyArray) -> Walk:
    """Return two descents in dimension `dimension`; each head of the first has `prompts` fresh prompts."""
    truth_key, start_key, prompt_key = jr.split(key, 3)
    truth = Head.orthogonal(dimension, key=truth_key)
    starts = start_off(truth, key=start_key), start_on(truth, key=start_key)
    both = _descend(jax.tree.map(lambda *vectors: jnp.stack(vectors), *starts), truth)
    path, kept = (jax.tree.map(lambda leaf, index=index: leaf[index], both) for index in range(2))
    errors = _errors(path.head, truth, prompts, prompt_key)
    on = path.overlaps
    bare = _risks(Overlaps(on.m_k, on.q_k, on.m_v, on.q_v, *(jnp.zeros_like(on.m_k) for _ in range(3))))
    path, kept = jax.tree.map(np.asarray, (path, kept.overlaps))
    return Walk(path, np.asarray(bare), np.asarray(errors), kept)


@jax.jit
def _descend(starts: Head, truth: Head) -> HeadTrajectory:
    """Return the descent from each start."""
    how = {"step_size": STEP_SIZE, "steps": STEPS, "every": EVERY}
    return jax.lax.map(lambda start: descend_population(_task(), softmax, start, truth, **how), starts)


@partial(jax.jit, static_argnums=2)
def _errors(heads: Head, truth: Head, prompts: int, key: PRNGKeyArray) -> Float[Array, "heads prompts"]:
    """Return squared errors of each head on fresh prompts."""

    def test(head, index):
        fresh = _task().draw(truth, prompts, noise_std=0.0, key=jr.fold_in(key, index))
        return (fresh.labels - fresh.outputs(softmax, head)) ** 2

    return jax.lax.map(lambda at: test(*at), (heads, jnp.arange(len(heads.key))))


@jax.jit
def _risks(overlaps: Overlaps) -> Float[Array, " heads"]:
    return jax.lax.map(lambda one: _task().fresh_risk(softmax, one), overlaps)


def _task() -> Spiked:
    with jax.ensure_compile_time_eval():  # its length decides shapes
        return Spiked(LENGTH, SNR)


def start_off(truth: Head, *, key: PRNGKeyArray) -> Head:
    """Return a start near the exchanged solution: small own overlaps, larger cross overlaps, and a common part."""
    own, common = jr.normal(key, (2, truth.key.size))
    return Head(
        0.2 * truth.key + 0.8 * truth.value + 0.6 * common,
        0.2 * truth.value - 0.8 * truth.key + 0.5 * common + 0.3 * own,
    )


def start_on(truth: Head, *, key: PRNGKeyArray) -> Head:
    """Return a start with the same own overlaps whose cross overlaps vanish."""
    rest = jr.normal(key, (2, truth.key.size))
    frame, _ = jnp.linalg.qr(jnp.stack([truth.key, truth.value, *rest], axis=1))
    size = jnp.sqrt(truth.key.size)
    return Head(0.2 * truth.key + 0.6 * size * frame[:, 2], 0.2 * truth.value + 0.6 * size * frame[:, 3])
