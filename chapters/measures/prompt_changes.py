"""Changes of one prompt, and how far each of them moves its output."""

from dataclasses import dataclass

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.measures.example_head import tilt
from lib.attention import Attention, attend
from lib.measures import Empirical

SHUFFLED = "tokens shuffled"
DOUBLED = "each token twice, shuffled"
REPEATED = "one token twice"
REPLACED = "one token replaced"
POSITIONED = "positions added, shuffled"


@dataclass(frozen=True)
class Moves:
    """Moves of the output, relative to the size of the original output, for each kind of change.

    Attributes:
      by_change: output of the changed prompt minus output of the original one.
      predicted: the predicted move when one token is repeated.
      averaged: the move of a plain mean when one token is repeated.
    """

    by_change: dict[str, Float[np.ndarray, "changes e"]]
    predicted: Float[np.ndarray, "changes e"]
    averaged: Float[np.ndarray, "changes e"]


def simulate_changes(
    params: Attention,
    query: Float[np.ndarray, " d"],
    prompt: Float[np.ndarray, "tokens d"],
    fresh: Float[np.ndarray, "changes d"],
    *,
    key: PRNGKeyArray,
) -> Moves:
    """Return the moves of the output under each kind of change, one instance per token in `fresh`.

    The tokens in `fresh` replace tokens of the prompt.
    """
    shuffle_key, double_key = jr.split(key)
    tokens, changes = len(prompt), len(fresh)
    indices = np.arange(changes) % tokens
    shuffled = prompt[np.argsort(jr.uniform(shuffle_key, (changes, tokens)))]
    doubled = np.tile(prompt, (2, 1))[np.argsort(jr.uniform(double_key, (changes, 2 * tokens)))]
    repeated, replaced = (np.tile(prompt, (changes, 1, 1)) for _ in range(2))
    repeated = np.concatenate([repeated, prompt[indices][:, None]], axis=1)
    replaced[np.arange(changes), indices] = fresh
    # The position is a third coordinate, which enters the scores but not the values.
    bilinear, value = np.eye(3), np.pad(params.value, ((0, 0), (0, 1)))
    bilinear[:2, :2] = params.bilinear
    position = np.linspace(0.0, 1.0, tokens)[:, None]
    positioned = np.stack([np.hstack([points, position]) for points in (prompt, *shuffled)])
    positioned = np.asarray(outputs_of(Attention(bilinear, value), positioned, np.append(query, 1.0)))

    scores = prompt @ tilt(params, query)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    values = prompt @ np.asarray(params.value).T
    output = weights @ values
    weight, difference = weights[indices][:, None], values[indices] - output
    moves = {
        SHUFFLED: outputs_of(params, shuffled, query) - output,
        DOUBLED: outputs_of(params, doubled, query) - output,
        REPEATED: outputs_of(params, repeated, query) - output,
        REPLACED: outputs_of(params, replaced, query) - output,
        POSITIONED: positioned[1:] - positioned[0],
    }
    size = np.linalg.norm(output)
    return Moves(
        {name: np.asarray(distances) / size for name, distances in moves.items()},
        predicted=weight / (1 + weight) * difference / size,
        averaged=difference / (tokens + 1) / size,
    )


@jax.jit
def outputs_of(params: Attention, prompts: Float[Array, "n L d"], query: Float[Array, " d"]) -> Float[Array, "n e"]:
    """Return the output of each prompt of a stack."""
    return jax.vmap(lambda points: attend(params, Empirical(points), query))(prompts)
