"""The gate of a head on labelled tokens: its weight of a component, on the infinite prompt and on finite ones."""

from functools import partial

import jax
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import expit, softmax

from chapters import UNOPTIMISED
from chapters.mixtures.gated_scores import bayes_score, label_tokens
from chapters.mixtures.labelled_heads import Blocks, attention, score_of
from chapters.mixtures.settings import published_classes
from lib.attention import attend, fluctuation

# Factors of the scores that are shown, half the side of the square of queries, and points per side.
FACTORS, HALF_SIDE, POINTS = (0.5, 1.0, 2.0), 3.0, 31
# Queries at which finite prompts are compared with the infinite one, and the factor of the scores there.
QUERIES, FINITE_FACTOR = np.array([[0.5, 0.5], [1.5, -0.5], [-0.5, 1.5]]), 0.5


def head_with_factor(factor: float) -> Blocks:
    """Return the head with the scores `factor · ⟨token, Γ⁻¹ query⟩` that averages labels: V reads the label only."""
    return Blocks(factor * np.eye(2), np.zeros(2), np.zeros(2), np.ones(()))


@jax.jit
def weight(blocks: Blocks, tokens: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Return the weight of component 0 for these query tokens on the infinite prompt: (1 + mean label)/2."""
    return 0.5 * (1 + jax.vmap(score_of(blocks, published_classes()))(tokens))


def solve_gates() -> pd.DataFrame:
    """Return the weight of component 0 on a square of query tokens for each factor of the scores.

    Returns:
      One row per factor and query: `factor`, `x`, `y`, `weight`, and `posterior`, the probability of component 0.
    """
    side = np.linspace(-HALF_SIDE, HALF_SIDE, POINTS)
    places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    best = jax.tree.map(np.asarray, bayes_score(published_classes()))
    posterior = expit(places @ best.slope + best.intercept)
    frames = [
        pd.DataFrame(
            {
                "factor": factor,
                "x": places[:, 0],
                "y": places[:, 1],
                "weight": weight(head_with_factor(factor), places),
                "posterior": posterior,
            }
        )
        for factor in FACTORS
    ]
    return pd.concat(frames, ignore_index=True)


def _outputs(
    query: Float[np.ndarray, " d_and_1"], key: PRNGKeyArray, length: int, prompts: int
) -> Float[np.ndarray, " prompts"]:
    """Return the outputs of finite prompts, softmax attention by NumPy."""
    head = jax.tree.map(np.asarray, attention(head_with_factor(FINITE_FACTOR)))
    tokens = np.asarray(_tokens(key, prompts * length)).reshape(prompts, length, -1)
    weights = softmax(tokens @ (head.bilinear @ query), axis=1)
    return np.sum(weights * (tokens @ head.value[0]), axis=1)


@partial(jax.jit, static_argnums=1)
def _tokens(key: PRNGKeyArray, count: int) -> Float[Array, "count d_and_1"]:
    return label_tokens(published_classes()).sample(count, key=key)


@partial(jax.jit, compiler_options=UNOPTIMISED)
def _limit(query: Float[Array, " d_and_1"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return the output on the infinite prompt, and the limit of L times the square error."""
    head, law = attention(head_with_factor(FINITE_FACTOR)), label_tokens(published_classes())
    return attend(head, law, query)[0], fluctuation(head, law, query)[0, 0]


def simulate_prompts(length: int, prompts: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return the square error of the output on finite prompts at three queries, and its limit for long prompts.

    Args:
      length: prompt length L.
      prompts: number of prompts per query.
      key: JAX random key.

    Returns:
      One row per query: `scaled`, the mean of L times the square distance of the output to that of the infinite prompt,
      `std_error`, its standard error, `limit`, the exact limit for large L, and `untilted`, the limit if all tokens had
      one weight.
    """
    untilted = float(_limit(np.zeros(3))[1])
    rows = []
    for index, query in enumerate(np.pad(QUERIES, ((0, 0), (0, 1)))):
        outputs = _outputs(query, jr.fold_in(key, index), length, prompts)
        output, limit = map(float, _limit(query))
        scaled = length * (outputs - output) ** 2
        rows.append(
            {
                "scaled": scaled.mean(),
                "std_error": scaled.std(ddof=1) / np.sqrt(prompts),
                "limit": limit,
                "untilted": untilted,
            }
        )
    return pd.DataFrame(rows)
