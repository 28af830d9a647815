"""Train a head on labelled tokens by stochastic gradient descent, from two kinds of starts."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.mixtures.gated_scores import bayes_score
from chapters.mixtures.labelled_heads import Blocks, score_of
from chapters.mixtures.settings import OPPOSITE_DIMENSION, opposite_classes
from chapters.mixtures.style import STARTS
from lib.flow import sgd
from lib.measures import GaussianMixture
from lib.random import normal

# Published: the step size.
STEP_SIZE = 1e-2
# Not published: the batch. Tokens that estimate the excess.
BATCH, TEST_TOKENS = 32, 4000
# Steps between two records, about so many of which are kept, and the step at which the starts are compared.
EVERY, ROWS, EARLY_STEPS = 20, 40, 80
# Starts whose overlap with the mean is measured.
OVERLAPS = 2000


def random_start(kind: str, key: PRNGKeyArray) -> Blocks:
    """Return a published start: all entries are standard normal, or those of v_21 only and the others are zero."""
    d = OPPOSITE_DIMENSION
    upper_key, column_key, row_key, corner_key = jr.split(key, 4)
    row = normal(row_key, (d,))
    if kind == "value only":
        return Blocks(np.zeros((d, d)), np.zeros(d), row, np.zeros(()))
    return Blocks(normal(upper_key, (d, d)), normal(column_key, (d,)), row, normal(corner_key))


@cache
def _law() -> GaussianMixture:
    """Return `opposite_classes` with NumPy arrays, which are constants of a program."""
    with jax.ensure_compile_time_eval():
        return jax.tree.map(np.asarray, opposite_classes())


def _draw(key: PRNGKeyArray, count: int) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
    """Return tokens and labels of `opposite_classes`."""
    label_key, token_key = jr.split(key)
    labels = 2.0 * jr.bernoulli(label_key, 0.5, (count,)) - 1.0
    noise = jr.normal(token_key, (count, OPPOSITE_DIMENSION))
    return labels[:, None] * _law().components.mean[0] + noise, labels


def _loss(blocks: Blocks, key: PRNGKeyArray) -> Float[Array, ""]:
    tokens, labels = _draw(key, BATCH)
    scores = jax.vmap(score_of(blocks, _law()))(tokens)
    return jnp.mean(jax.nn.softplus(-labels * scores))


def recorded_steps(steps: int) -> np.ndarray:
    """Return the steps after which the excess is computed: multiples of `EVERY`, about even on a logarithmic axis."""
    kept = np.unique(np.round(np.geomspace(1, steps // EVERY, ROWS)).astype(int))
    return EVERY * np.union1d(kept, [EARLY_STEPS // EVERY])


@partial(jax.jit, static_argnames="steps")
def _run(start: Blocks, key: PRNGKeyArray, steps: int) -> Float[Array, "rows 2"]:
    path = sgd(_loss, start, optimiser=optax.sgd(STEP_SIZE), steps=steps, every=EVERY, key=key)
    kept = jax.tree.map(lambda leaf: leaf[recorded_steps(steps) // EVERY - 1], path.params)
    tokens = _draw(jr.fold_in(key, steps), TEST_TOKENS)[0]
    odds = jax.vmap(bayes_score(_law()))(tokens)

    def excess(blocks):
        scores = jax.vmap(score_of(blocks, _law()))(tokens)
        # the divergence of the predicted probability of a label from the true one
        divergence = jax.nn.softplus(scores) - jax.nn.softplus(odds) - jax.nn.sigmoid(odds) * (scores - odds)
        return jnp.stack([jnp.mean(divergence), jnp.std(divergence) / np.sqrt(TEST_TOKENS)])

    return jax.lax.map(excess, kept)


def train_classifiers(steps: int, runs: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return the excess risk during stochastic gradient descent on `opposite_classes`, from both kinds of starts.

    Args:
      steps: number of steps of SGD, a multiple of `EVERY`.
      runs: number of runs for each kind of start.
      key: JAX random key.

    Returns:
      One row per start, run and recorded step: `kind`, `run`, `steps`, `excess`, and its standard error
      `std_error`.
    """
    recorded, frames = recorded_steps(steps), []
    for number, kind in enumerate(STARTS):
        for run in range(runs):
            start_key, run_key = jr.split(jr.fold_in(jr.fold_in(key, number), run))
            values = np.asarray(_run(random_start(kind, start_key), run_key, steps))
            columns = {"excess": values[:, 0], "std_error": values[:, 1]}
            frames.append(pd.DataFrame({"kind": kind, "run": run, "steps": recorded, **columns}))
    return pd.concat(frames, ignore_index=True)


def simulate_start_overlaps(*, key: PRNGKeyArray) -> np.ndarray:
    """Return ⟨v_21, m⟩²/‖v_21‖² for `OVERLAPS` starts of the value only; 0 under the hypothesis of Theorem 3.6."""
    rows = np.asarray(normal(key, (OVERLAPS, OPPOSITE_DIMENSION)))
    mean = _law().components.mean[0]
    return (rows @ mean) ** 2 / np.sum(rows**2, axis=1)
