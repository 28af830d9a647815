"""The gate of a head on labelled tokens: its weight of a component, on the infinite prompt and on finite ones."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.mixtures.gated_scores import bayes_score, label_tokens
from chapters.mixtures.labelled_heads import Blocks, attention, score_of
from chapters.mixtures.settings import published_classes
from lib.attention import attend, fluctuation
from lib.measures import Empirical

# Factors of the scores that are shown, half the side of the square of queries, and points per side.
FACTORS, HALF_SIDE, POINTS = (0.5, 1.0, 2.0), 3.0, 31
# Queries at which finite prompts are compared with the infinite one, and the factor of the scores there.
QUERIES, FINITE_FACTOR = np.array([[0.5, 0.5], [1.5, -0.5], [-0.5, 1.5]]), 0.5


def head_with_factor(factor: float) -> Blocks:
    """Return the head with the scores `factor · ⟨token, Γ⁻¹ query⟩` that averages labels: V reads the label only."""
    return Blocks(factor * jnp.eye(2), jnp.zeros(2), jnp.zeros(2), jnp.ones(()))


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
    places = jnp.asarray(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))
    posterior = np.asarray(jax.nn.sigmoid(jax.vmap(bayes_score(published_classes()))(places)))
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


@partial(jax.jit, static_argnames=("length", "prompts"))
def _outputs(query: Float[Array, " d_and_1"], key: PRNGKeyArray, length: int, prompts: int) -> Float[Array, " prompts"]:
    head, law = attention(head_with_factor(FINITE_FACTOR)), label_tokens(published_classes())
    tokens = law.sample(prompts * length, key=key).reshape(prompts, length, -1)
    return jax.lax.map(lambda prompt: attend(head, Empirical(prompt), query)[0], tokens)


@jax.jit
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
    untilted = float(_limit(jnp.zeros(3))[1])
    rows = []
    for index, query in enumerate(jnp.pad(jnp.asarray(QUERIES), ((0, 0), (0, 1)))):
        outputs = _outputs(query, jr.fold_in(key, index), length, prompts)
        output, limit = _limit(query)
        scaled = length * np.asarray((outputs - output) ** 2)
        rows.append(
            {
                "scaled": scaled.mean(),
                "std_error": scaled.std(ddof=1) / np.sqrt(prompts),
                "limit": float(limit),
                "untilted": untilted,
            }
        )
    return pd.DataFrame(rows)
