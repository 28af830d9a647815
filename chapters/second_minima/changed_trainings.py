"""The published training with one change at a time, from random starts: which change finds the optimum?

Prompts have one length and the corrected covariances. The training time is that of the published protocol, in fewer and
larger steps. The changes were chosen, and the starts numbered, before any of them was run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.published_experiment.batches import Pool, batch_loss, constant_root, covariance_root
from chapters.published_experiment.every_run import swapped_fraction
from chapters.published_experiment.head_points import points_of
from chapters.published_experiment.protocol import (
    POOLS,
    PUBLISHED_STEP_SIZE,
    PUBLISHED_STEPS,
    WIDTH,
    SeparateWeights,
    keys_of_tracked_run,
    published_head,
    published_task,
)
from chapters.second_minima.landscape import sharp_square
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.published_runs import DATA
from companion import Column
from lib.flow import sgd
from lib.icl import Blocks
from lib.icl.regression import LinearRegression
from lib.random import fast_normal

TABLE = "cures"
STARTS, STEP_SIZE, BATCH = 16, 0.01, 128
STEPS = round(PUBLISHED_STEPS * PUBLISHED_STEP_SIZE / STEP_SIZE)
# Fresh prompts that measure the mean square of several heads, which is not known exactly here, and the size of a batch.
PROMPTS, AT_ONCE = 1 << 18, 1 << 12
Start = Callable[[SeparateWeights, PRNGKeyArray], SeparateWeights]


def as_drawn(weights: SeparateWeights, key: PRNGKeyArray) -> SeparateWeights:
    """Return the weights as they are: PyTorch's default."""
    return weights


def balanced_scale() -> Float[Array, ""]:
    """Return the α of [BB26, Eq. 9] that is half of the largest one that [BB26, Theorem 5.1] allows."""
    return 2**0.5 / ((WIDTH - 1) ** 0.25 * jnp.linalg.norm(published_task().cov, 2)) / 2


def balanced(weights: SeparateWeights, key: PRNGKeyArray) -> SeparateWeights:
    """Return weights whose product is [BB26, Eq. 9] with normal Θ: `U = diag(A, 0)`, `v = (0, b)`, ‖A‖_F = b."""
    blocks = Blocks.balanced(jr.normal(key, (WIDTH - 1, WIDTH - 1), weights.query.dtype), balanced_scale())
    scores = jnp.pad(covariance_root(blocks.matrix).T, ((0, 1), (0, 1))) * WIDTH**0.25
    label = jnp.zeros((1, WIDTH)).at[0, -1].set(blocks.gain**0.5)
    return jax.tree.map(
        lambda new, old: new.astype(old.dtype),
        SeparateWeights(scores, scores, label.T @ label / blocks.gain**0.5, label),
        weights,
    )


def label_entry(size: float) -> Start:
    """Return a start that sets the size of the label's entry of v, by the least change of the value matrix."""

    def start(weights: SeparateWeights, key: PRNGKeyArray) -> SeparateWeights:
        row, column = weights.output[0], weights.value[:, -1]
        entry = row @ column
        column = column + row * (size * jnp.sign(entry) - entry) / (row @ row)
        return SeparateWeights(weights.query, weights.key, weights.value.at[:, -1].set(column), weights.output)

    return start


@dataclass(frozen=True)
class Change:
    """What differs from the published protocol."""

    name: str
    start: Start = as_drawn
    heads: int = 1
    batch: int = BATCH


CONTROL = "nothing"
CHANGES = {
    change.name: change
    for change in (
        Change(CONTROL),
        Change("balanced start", start=balanced),
        *(Change(f"label entry {size:g}", start=label_entry(size)) for size in (0.5, 1.0, 2.0)),
        *(Change(f"{heads} heads", heads=heads) for heads in (2, 4)),
        *(Change(f"batch {batch}", batch=batch) for batch in (16, 4)),
    )
}
PARTS = [(change, activation) for change in CHANGES for activation in sorted(POOLS)]
COLUMNS = {
    "change": Column("Change of the published training", "name"),
    "activation": Column("Activation of the head or heads: softmax or linear attention", "name"),
    "start": Column("Number of the start, which is its seed"),
    "risk": Column(
        "Mean square error at the end, label noise included: exact for one head, on fresh prompts for several"
    ),
    "risk_std_error": Column("Standard error of the mean square on fresh prompts"),
    "wrong_way": Column("Swapped fraction of one head: |u||a| / (|u||a| + |A||b|)"),
}
_RESULTS = list(COLUMNS)[3:]


def read_ends() -> pd.DataFrame:
    """Return the tracked ends of all trainings."""
    return pd.read_csv(DATA / f"{TABLE}.csv")


def frame_of(parts: list[tuple[str, str]], numbers: Float[np.ndarray, "parts n"]) -> pd.DataFrame:
    """Return one row per training from the results of `train_and_judge` for each part."""
    frames = [
        pd.DataFrame(ends.reshape(-1, len(_RESULTS)), columns=_RESULTS).assign(
            change=change, activation=activation, start=np.arange(ends.size // len(_RESULTS))
        )
        for (change, activation), ends in zip(parts, numbers, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)[list(COLUMNS)]


def train_and_judge(
    change: Change, activation: str, *, starts: Sequence[int] = range(STARTS), steps: int = STEPS
) -> Float[np.ndarray, " n"]:
    """Train from each start; return the mean square at the end, its standard error and the swapped fraction."""
    with jax.enable_x64(False):  # in single precision, as published
        trained = _train(change, activation, starts, steps)
    trained = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), trained)
    judge = _judge_exactly if change.heads == 1 else _judge_on_prompts
    return np.column_stack(judge(activation, trained)).ravel()


def _train(change: Change, activation: str, starts: Sequence[int], steps: int) -> SeparateWeights:
    """Train one start after another in one program; the first head of a start is that of the other tables of runs."""
    if change.heads == 1:
        loss = batch_loss(
            published_task(),
            SECOND_LENGTH,
            batch=change.batch,
            head=published_head,
            pool=POOLS[activation],
            weight=1.0,
        )
    else:
        loss = heads_loss(published_task(), SECOND_LENGTH, batch=change.batch, pool=POOLS[activation])

    def train(seed):
        weights_key, prompts_key = keys_of_tracked_run(seed)
        first = SeparateWeights.draw(WIDTH, key=weights_key)
        weights = change.start(first, jr.fold_in(weights_key, WIDTH))
        if change.heads > 1:
            others = jax.vmap(lambda key: SeparateWeights.draw(WIDTH, key=key))(
                jr.split(jr.fold_in(weights_key, change.heads), change.heads - 1)
            )
            weights = jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, others)
        path = sgd(loss, weights, optimiser=optax.sgd(STEP_SIZE), steps=steps, every=steps, key=prompts_key)
        return jax.tree.map(lambda leaf: leaf[-1], path.params)

    return jax.jit(lambda seeds: jax.lax.map(train, seeds))(jnp.asarray(starts))


def heads_loss(
    task: LinearRegression, length: int, *, batch: int, pool: Pool
) -> Callable[[SeparateWeights, PRNGKeyArray], Float[Array, ""]]:
    """Return `(weights, key) ↦ mean (Σ_h ŷ_h - y)²` over a batch of fresh prompts; weights have an axis of heads.

    Every token is drawn, because the sums that `batch_loss` draws are those of one head.
    """
    d = task.dimension
    root, query_root = constant_root(task.cov), constant_root(task.query_cov)

    def loss(weights, key):
        dtype = weights.query.dtype
        heads = jax.vmap(published_head)(weights)
        normals = fast_normal(key, (batch, 2 * d + 1 + length * (d + 1)), dtype)
        first, second, label, rest = jnp.split(normals, (d, 2 * d, 2 * d + 1), axis=1)
        w, query = task.task_scale.astype(dtype) * first, second @ jnp.asarray(query_root.T, dtype)
        rest = rest.reshape(batch, length, d + 1)
        x, noise = rest[..., :d] @ jnp.asarray(root.T, dtype), task.noise_std.astype(dtype)
        y = jnp.sum(x * w[:, None], axis=-1, keepdims=True) + noise * rest[..., d:]
        tokens = jnp.concatenate([x, y], axis=-1)
        scores = jnp.einsum("hij,bj,bli->bhl", heads.bilinear[..., :d], query, tokens)
        values = jnp.einsum("hi,bli->bhl", heads.value[:, -1], tokens)
        outputs = jnp.sum(jax.vmap(jax.vmap(pool))(scores, values), axis=1)
        return jnp.mean((outputs - jnp.sum(w * query, axis=1) - noise * label[:, 0]) ** 2)

    return loss


def _judge_exactly(activation: str, trained: SeparateWeights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    heads = jax.vmap(published_head)(trained)
    risks = jax.jit(partial(jax.lax.map, partial(sharp_square, activation, published_task())))
    points = points_of(heads)
    return (
        np.asarray(risks(heads)),
        np.full(len(points), np.nan),
        np.array([swapped_fraction(point) for point in points]),
    )


def _judge_on_prompts(activation: str, trained: SeparateWeights) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measure all heads on the same fresh prompts, from a key that no training uses."""
    loss = heads_loss(published_task(), SECOND_LENGTH, batch=AT_ONCE, pool=POOLS[activation])
    keys = jr.split(jr.fold_in(jr.key(STARTS), PROMPTS), PROMPTS // AT_ONCE)
    means = np.asarray(jax.jit(partial(jax.lax.map, lambda key: jax.vmap(loss, (0, None))(trained, key)))(keys))
    errors = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return means.mean(axis=0), errors, np.full(means.shape[1], np.nan)
