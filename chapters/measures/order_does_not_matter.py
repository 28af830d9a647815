r"""What a prompt may lose without attention noticing, and what not.

Each point is one changed prompt; across, on a logarithmic axis, how far its output moved, as a fraction of the
output's size. Shuffling the tokens, or writing each of them twice, moves only the last bits of floating-point
numbers (exact agreement would be drawn at $10^{-17}$): the prompt is the same measure. Writing *one* token
twice, or replacing one, makes another measure, and another output. In the lowest row every token carries its
position, as a further coordinate that the scores read; then the order matters.

Alt: Strip chart with five rows on a logarithmic axis. The rows for shuffled and for doubled prompts lie near
ten to the minus fifteen, at rounding errors. The rows for one token repeated, one token replaced, and tokens
that carry positions lie a dozen decades to the right, between ten to the minus four and one tenth.
"""

from dataclasses import dataclass

import jax
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from chapters.measures.scene import ROUNDING, tilt
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.attention import Attention, attend
from lib.measures import Empirical

SHUFFLED = "tokens shuffled"
DOUBLED = "each token twice, shuffled"
REPEATED = "one token twice"
REPLACED = "one token replaced"
PLACED = "positions added, shuffled"

# Where outputs that agree to the last bit are drawn, on an axis that has no zero.
LAST_BIT = 1e-17
# The golden ratio spreads points evenly, whatever their number.
GOLDEN = (5**0.5 - 1) / 2


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


def numbers(moves: Moves) -> Numbers:
    """The size of every move; shuffling and doubling move nothing, one repeated token moves as its weight says."""
    return Numbers(_table(moves), _claims(moves))


def _table(moves: Moves) -> Table:
    """How far each change moves the output: one change a row."""
    frames = [
        pd.DataFrame({"change": name, "trial": np.arange(len(these)), "distance": _lengths(these)})
        for name, these in moves.by_change.items()
    ]
    columns = {
        "change": Column("What was done to the prompt", "name"),
        "trial": Column("Which shuffle, or which token"),
        "distance": Column(
            "Distance between the outputs before and after, over the size of the output", absolute=ROUNDING
        ),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _claims(moves: Moves) -> list[Claim]:
    """Shuffling and doubling do nothing; repeating one token does exactly what its weight says."""
    unmoved = max(float(_lengths(moves.by_change[name]).max()) for name in (SHUFFLED, DOUBLED))
    right, wrong = (
        float(_lengths(moves.by_change[REPEATED] - theory).max()) for theory in (moves.predicted, moves.averaged)
    )
    return [
        Claim(
            id="measures-order",
            statement=(
                "Shuffling the tokens of a prompt, or writing each of them twice, moves the output of attention by "
                "rounding errors only: the largest move, relative to the output."
            ),
            source="[BB26]",
            measured=unmoved,
            expected=0.0,
            tolerance=ROUNDING,
            relation="≤",
            alternative=Alternative("each token carried its position", float(_lengths(moves.by_change[PLACED]).max())),
        ),
        Claim(
            id="measures-one-more",
            statement=(
                "A token of softmax weight p, written once more, moves the output T by p/(1 + p) · (Vz - T): the "
                "largest deviation, relative to the output."
            ),
            source="derived here",
            measured=right,
            expected=0.0,
            tolerance=ROUNDING,
            relation="≤",
            alternative=Alternative("every token counted the same, as in a plain mean", wrong),
        ),
    ]


def _lengths(vectors: Float[np.ndarray, "n e"]) -> Float[np.ndarray, " n"]:
    return np.linalg.norm(vectors, axis=1)


def draw(table: pd.DataFrame) -> Figure:
    """A row a kind of change: each move a point, on a logarithmic axis."""
    changes = list(dict.fromkeys(table["change"]))
    figure, axes = plt.subplots(figsize=(8.0, 3.9))
    for row, change in enumerate(changes):
        strip = table[table["change"] == change]
        heights = row + 0.5 * ((strip["trial"] * GOLDEN) % 1 - 0.5)
        colour = "C0" if strip["distance"].max() < 1e-10 else "C1"
        distances = strip["distance"].clip(lower=LAST_BIT)
        axes.plot(distances, heights, "o", color=colour, markersize=5, alpha=0.6, markeredgewidth=0)
    axes.axvline(np.finfo(float).eps, color=ink(), linestyle="--", linewidth=1.5)
    place = (np.finfo(float).eps, len(changes) - 0.6)
    note = "spacing of\nfloating-point numbers"
    axes.annotate(note, place, xytext=(7, 0), textcoords="offset points", va="bottom")
    axes.set(xscale="log", xlim=(LAST_BIT / 2, 1.0), ylim=(len(changes) - 0.4, -0.6))
    axes.set_yticks(range(len(changes)), changes)
    axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.set_xticks([10.0**power for power in range(-17, 1, 2)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("move of the output, relative to its size")
    axes.legend(
        handles=[_dot("C0", "same measure"), _dot("C1", "another measure")], loc="center", bbox_to_anchor=(0.45, 0.75)
    )
    return figure


def _dot(colour: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", linestyle="", markersize=7, label=label)
