"""Changes made to one prompt, and how far each of them moves its output."""

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
PLACED = "positions added, shuffled"


@dataclass(frozen=True)
class Moves:
    """Output of a changed prompt minus that of the prompt, over the size of the latter, by kind of change.

    Also what one repeated token should do, as `predicted`, and what it would do to a plain mean, as `averaged`.
    """

    by_change: dict[str, Float[np.ndarray, "changes e"]]
    predicted: Float[np.ndarray, "changes e"]
    averaged: Float[np.ndarray, "changes e"]


def edit_prompt(
    params: Attention,
    query: Float[np.ndarray, " d"],
    prompt: Float[np.ndarray, "tokens d"],
    fresh: Float[np.ndarray, "changes d"],
    *,
    key: PRNGKeyArray,
) -> Moves:
    """Each kind of change, made as often as there are `fresh` tokens; these are what replaces others."""
    shuffle_key, double_key = jr.split(key)
    tokens, changes = len(prompt), len(fresh)
    which = np.arange(changes) % tokens
    shuffled = prompt[np.argsort(jr.uniform(shuffle_key, (changes, tokens)))]
    doubled = np.tile(prompt, (2, 1))[np.argsort(jr.uniform(double_key, (changes, 2 * tokens)))]
    repeated, replaced = (np.tile(prompt, (changes, 1, 1)) for _ in range(2))
    repeated = np.concatenate([repeated, prompt[which][:, None]], axis=1)
    replaced[np.arange(changes), which] = fresh
    # A token that carries its place: a third coordinate, which the scores read and the values do not.
    bilinear, value = np.eye(3), np.pad(params.value, ((0, 0), (0, 1)))
    bilinear[:2, :2] = params.bilinear
    place = np.linspace(0.0, 1.0, tokens)[:, None]
    placed = np.stack([np.hstack([points, place]) for points in (prompt, *shuffled)])
    placed = np.asarray(answers(Attention(bilinear, value), placed, np.append(query, 1.0)))

    scores = prompt @ tilt(params, query)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    values = prompt @ np.asarray(params.value).T
    output = weights @ values
    share, pull = weights[which][:, None], values[which] - output
    changed = {
        SHUFFLED: answers(params, shuffled, query) - output,
        DOUBLED: answers(params, doubled, query) - output,
        REPEATED: answers(params, repeated, query) - output,
        REPLACED: answers(params, replaced, query) - output,
        PLACED: placed[1:] - placed[0],
    }
    size = np.linalg.norm(output)
    return Moves(
        {name: np.asarray(these) / size for name, these in changed.items()},
        predicted=share / (1 + share) * pull / size,
        averaged=pull / (tokens + 1) / size,
    )


@jax.jit
def answers(params: Attention, prompts: Float[Array, "n L d"], query: Float[Array, " d"]) -> Float[Array, "n e"]:
    """`attend` on each prompt of a stack."""
    return jax.vmap(lambda points: attend(params, Empirical(points), query))(prompts)
