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

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from chapters.measures.example_head import ROUNDING
from chapters.measures.prompt_changes import DOUBLED, PLACED, REPEATED, SHUFFLED, Moves
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink

# Where outputs that agree to the last bit are drawn, on an axis that has no zero.
LAST_BIT = 1e-17
# The golden ratio spreads points evenly, whatever their number.
GOLDEN = (5**0.5 - 1) / 2


def numbers(moves: Moves) -> Numbers:
    """The size of every move; shuffling and doubling move nothing, one repeated token moves as its weight says."""
    return Numbers(_table(moves), _claims(moves))


def _table(moves: Moves) -> Table:
    """How far each change moves the output: one change a row."""
    frames = [
        pd.DataFrame({"change": name, "instance": np.arange(len(these)), "distance": _lengths(these)})
        for name, these in moves.by_change.items()
    ]
    columns = {
        "change": Column("What was done to the prompt", "name"),
        "instance": Column("Which shuffle, or which token"),
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
            box="def-attention-on-measures",
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
            box="one-token-more",
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
        heights = row + 0.5 * ((strip["instance"] * GOLDEN) % 1 - 0.5)
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
    headline(figure, "The answer depends on the tokens' measure alone, not on their order")
    return figure


def _dot(colour: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", linestyle="", markersize=7, label=label)
