"""The published training of two softmax heads: weights, starts, the loss of a fresh batch, and the list of runs.

The protocol is that of the code of [He25] for two heads: separate query, key and value matrices and an output row per
head, without biases, PyTorch's default start, Adam, 256 fresh prompts of 40 tokens per step.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from lib.icl import LinearRegression
from lib.random import fast_normal

HEADS, DIMENSION, LENGTH, BATCH = 2, 5, 40, 256
WIDTH = DIMENSION + 1
STEP_SIZE = 1e-3
# Steps between two rows of a table; and the last part of a run, over which the key at rest is averaged.
STEPS_A_ROW, LAST_PART = 5000, 0.2
# Bounds of the claims on the key at rest, set before these trainings were looked at. At the published step size, from
# every start and seed, it is between these two numbers.
REST = (0.11, 0.15)
# With half of the step, and at the end of a step that decreases to zero, the key is at most this fraction of the key at
# rest: the balance of drift and noise gives about 0.9 for half of the step (heuristic), and no influence gives 1.
LOWER = 0.95
# A run that starts at the optimum ends with a key that is at least this multiple of the best key.
HIGHER = 1.2
# XLA sums over the second of three axes faster than over the first of two, so a batch is two halves.
HALVES = 2


class PairWeights(eqx.Module):
    """Query, key and value matrices p×p and an output row of each head, p = d + 1."""

    query: Float[Array, "heads p p"]
    key: Float[Array, "heads p p"]
    value: Float[Array, "heads p p"]
    output: Float[Array, "heads p"]

    @classmethod
    def draw(cls, *, key: PRNGKeyArray, dtype: Any = jnp.float32) -> "PairWeights":
        """Draw PyTorch's default linear layers: uniform in ±1/√fan_in, where the output layer reads all heads."""
        keys, square = jr.split(key, 4), (HEADS, WIDTH, WIDTH)
        bound, output = WIDTH**-0.5, (HEADS * WIDTH) ** -0.5
        matrices = (jr.uniform(each, square, dtype, -bound, bound) for each in keys[:3])
        return cls(*matrices, jr.uniform(keys[3], (HEADS, WIDTH), dtype, -output, output))

    @classmethod
    def opposite(cls, omega: float, mu: float, *, key: PRNGKeyArray, dtype: Any = jnp.float32) -> "PairWeights":
        """Return a pair of heads (ω, μ) and (-ω, -μ) with balanced factors in random hidden bases."""
        sign = jnp.array([1.0, -1.0], dtype)
        keys = jr.split(key, 2 * HEADS).reshape(2, HEADS)
        bases = jax.vmap(lambda each: jnp.linalg.qr(jr.normal(each, (WIDTH, WIDTH), dtype))[0])(keys[0])
        directions = jax.vmap(lambda each: jr.normal(each, (WIDTH,), dtype))(keys[1])
        directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
        covariates = bases * jnp.ones(WIDTH, dtype).at[-1].set(0.0)
        root, size = (abs(omega) * WIDTH**0.5) ** 0.5, abs(mu) ** 0.5
        label = jnp.zeros(WIDTH, dtype).at[-1].set(1.0)
        value = size * directions[:, :, None] * label
        return cls(root * covariates, sign[:, None, None] * root * covariates, value, sign[:, None] * size * directions)

    @property
    def circuits(self) -> tuple[Float[Array, "heads p p"], Float[Array, "heads p"]]:
        """The matrices `KᵀQ/√p`, which make the scores, and the rows `OV`, which make the values."""
        scores = jnp.einsum("hij,hik->hjk", self.key, self.query) / WIDTH**0.5
        return scores, jnp.einsum("hi,hij->hj", self.output, self.value)


def pair_of(weights: PairWeights) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Return key and value of the opposite pair nearest to the weights, and the root mean square of all else in KᵀQ.

    The key of one head is the mean of the diagonal of `KᵀQ/√p` over covariates, and its value is the entry of `OV` at
    the label; the pair has half of the difference of its two heads.
    """
    scores, values = weights.circuits
    block = scores[:, :DIMENSION, :DIMENSION]
    keys = jnp.trace(block, axis1=1, axis2=2) / DIMENSION
    rest = block - keys[:, None, None] * jnp.eye(DIMENSION, dtype=block.dtype)
    unlike = jnp.sqrt(jnp.mean(rest**2))
    return jnp.abs(keys[0] - keys[1]) / 2, jnp.abs(values[0, -1] - values[1, -1]) / 2, unlike


def draw_batch(
    task: LinearRegression, key: PRNGKeyArray, *, batch: int = BATCH, length: int = LENGTH, dtype: Any = jnp.float32
) -> tuple[Float[Array, "p halves L half"], Float[Array, "d B"], Float[Array, " B"]]:
    """Draw tokens (x, y), queries and labels of a fresh batch from isotropic regression."""
    scale, noise = float(task.task_scale), float(task.noise_std)
    half, pair_type = batch // HALVES, jnp.promote_types(dtype, jnp.complex64)
    pairs = fast_normal(key, (WIDTH // 2 * HALVES, length, half), pair_type)
    normals = jnp.concatenate([pairs.real, pairs.imag]).reshape(WIDTH, HALVES, length, half)
    others = fast_normal(key, (WIDTH, batch), pair_type, stream=1)
    others = jnp.concatenate([others.real, others.imag])
    w, query, label = scale * others[:DIMENSION], others[DIMENSION : 2 * DIMENSION], others[2 * DIMENSION]
    x = normals[:DIMENSION]
    y = jnp.sum(w.reshape(DIMENSION, HALVES, 1, half) * x, axis=0) + noise * normals[DIMENSION]
    tokens = jax.lax.optimization_barrier(jnp.concatenate([x, y[None]]))
    return tokens, query, jnp.sum(w * query, axis=0) + noise * label


def batch_loss(task: LinearRegression, *, batch: int = BATCH, length: int = LENGTH):
    """Return the mean square error of a fresh batch as a function of weights and a random key.

    Its gradient is computed by hand, which takes a third of the time of automatic differentiation. Only first
    derivatives are valid.
    """
    barrier, half = jax.lax.optimization_barrier, batch // HALVES

    def loss(weights: PairWeights, key: PRNGKeyArray) -> Float[Array, ""]:
        scores, values = weights.circuits
        scores = scores[:, :, :DIMENSION]  # the query has no label
        fixed_scores, fixed_values = jax.lax.stop_gradient((scores, values))
        tokens, query, label = draw_batch(task, key, batch=batch, length=length, dtype=values.dtype)
        tilts = jnp.einsum("hjk,kb->hjb", fixed_scores, query).reshape(HEADS, WIDTH, HALVES, 1, half)
        factors, answers, totals, outputs = [], [], [], []
        for tilt, row in zip(tilts, fixed_values, strict=True):
            score = sum(tokens[i] * tilt[i] for i in range(WIDTH))
            answer = sum(tokens[i] * row[i] for i in range(WIDTH))
            factor = barrier(jnp.exp(score))
            total = jnp.sum(factor, axis=1)
            factors.append(factor)
            answers.append(answer)
            totals.append(total)
            outputs.append(jnp.sum(factor * answer, axis=1) / total)
        error = outputs[0] + outputs[1] - label.reshape(HALVES, half)
        by_scores, by_values = [], []
        for factor, answer, total, output in zip(factors, answers, totals, outputs, strict=True):
            slope = 2 / batch * error / total
            moved = barrier(factor * (answer - output[:, None]))
            by_values.append(jnp.stack([jnp.sum(slope * jnp.sum(factor * z, axis=1)) for z in tokens]))
            by_scores.append(jnp.stack([(slope * jnp.sum(moved * z, axis=1)).ravel() for z in tokens]) @ query.T)
        # the added terms are zero but carry the gradient
        return (
            jnp.mean(error**2)
            + jnp.sum(jnp.stack(by_scores) * (scores - fixed_scores))
            + jnp.sum(jnp.stack(by_values) * (values - fixed_values))
        )

    return loss


@dataclass(frozen=True)
class Run:
    """One training: where it starts, which step size it has, its seed and its number of steps.

    `start` is `own`, PyTorch's default, or `optimum`, the exact optimum of a pair, or `rest`, the end of the run from
    its own start with the published step. `step` is `published`, `half`, or `decaying`: the published step, lowered to
    zero along half a period of a cosine.
    """

    start: str
    step: str
    seed: int
    steps: int

    @property
    def name(self) -> str:
        """Return the name of the run, valid in file names."""
        return f"{self.start}-{self.step}-{self.seed}"

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Return Adam with the defaults of PyTorch and the step size of this run."""
        size = {
            "published": STEP_SIZE,
            "half": STEP_SIZE / 2,
            "decaying": optax.cosine_decay_schedule(STEP_SIZE, self.steps),
        }
        return optax.adam(size[self.step], b1=0.9, b2=0.999, eps=1e-8)


# In the order in which they are made: runs that start at rest need the end of another one.
RUNS = tuple(
    Run(start, step, seed, steps)
    for start, step, steps in (
        ("own", "published", 250_000),
        ("optimum", "published", 250_000),
        ("rest", "half", 300_000),
        ("rest", "decaying", 300_000),
        ("optimum", "half", 300_000),
    )
    for seed in (0, 1)
)
