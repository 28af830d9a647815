r"""Shuffling or doubling all tokens of a prompt does not change the output; changing one token does.

Each point is one changed prompt. The horizontal axis is logarithmic and shows the change of the output, relative to its
size. Shuffling the tokens, or writing each of them twice, gives the same measure and changes the output only by
rounding (exact agreement is drawn at $10^{-17}$). Writing *one* token twice, or replacing one, gives another measure
and another output. In the lowest row every token has its position as a further coordinate, on which the scores depend;
then the order matters.

Alt: Strip chart with five rows on a logarithmic axis. The rows for shuffled and for doubled prompts are near
ten to the minus fifteen, at rounding errors. The rows for one token repeated, one token replaced, and tokens
that carry positions are a dozen decades to the right, between ten to the minus four and two tenths.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.measures.example_head import ROUNDING, ROUNDING_REASON
from chapters.measures.prompt_changes import DOUBLED, POSITIONED, REPEATED, SHUFFLED, Moves
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# Where exact agreement is drawn, on an axis that has no zero.
LAST_BIT = 1e-17
# Multiples of the golden ratio, modulo 1, are evenly spread for any number of points.
GOLDEN = (5**0.5 - 1) / 2


def numbers(moves: Moves) -> Numbers:
    """Return the size of every move, and the claims on shuffled, doubled and repeated tokens."""
    groups = [
        {"change": name, "instance": np.arange(len(distances)), "distance": _lengths(distances)}
        for name, distances in moves.by_change.items()
    ]
    columns = {
        "change": Column("Kind of change of the prompt", "name"),
        "instance": Column("Number of the shuffle or of the token"),
        "distance": Column(
            "Distance between the outputs before and after the change, relative to the size of the output",
            absolute=ROUNDING,
        ),
    }
    claim = Claims("measures", source="[BB26]")
    claim.at_most(
        "order",
        "Shuffling the tokens of a prompt, or writing each of them twice, moves the output of attention only "
        "by rounding errors (measured: the largest move relative to the output).",
        _lengths(np.concatenate([moves.by_change[SHUFFLED], moves.by_change[DOUBLED]])).max(),
        0,
        within=ROUNDING,
        because=ROUNDING_REASON,
        rejects=("each token carries its position", _lengths(moves.by_change[POSITIONED]).max()),
        box="def-attention-on-measures",
    )
    repeated = moves.by_change[REPEATED]
    claim.at_most(
        "one-more",
        "Repeating a token of softmax weight $p$ moves the output $T$ by $p/(1 + p) · (Vz - T)$ "
        "(measured: the largest deviation relative to the output).",
        _lengths(repeated - moves.predicted).max(),
        0,
        within=ROUNDING,
        because=ROUNDING_REASON,
        rejects=("every token has the same weight, as in a plain mean", _lengths(repeated - moves.averaged).max()),
        source="derived here",
        box="one-token-more",
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one row per kind of change, with one point per changed prompt."""
    changes = list(dict.fromkeys(table["change"]))
    figure, axes = plt.subplots(figsize=(COLUMN, 3.9))
    for row, (_, strip) in enumerate(table.groupby("change", sort=False)):
        heights = row + 0.5 * ((strip["instance"] * GOLDEN) % 1 - 0.5)
        colour = "C0" if strip["distance"].max() < 1e-10 else "C1"
        distances = strip["distance"].clip(lower=LAST_BIT)
        axes.plot(distances, heights, "o", color=colour, markersize=5, alpha=0.6, markeredgewidth=0)
    axes.axvline(np.finfo(float).eps, color=ink(), linestyle="--", linewidth=1.5)
    name = "spacing of\nfloating-point numbers"
    label(axes, np.finfo(float).eps, len(changes) - 0.6, name, ink(), xytext=(7, 0), va="bottom")
    axes.set(xscale="log", xlim=(LAST_BIT / 2, 1.0), ylim=(len(changes) - 0.4, -0.6))
    axes.set_yticks(range(len(changes)), changes)
    axes.set_xticks([10.0**power for power in range(-17, 1, 2)])
    axes.minorticks_off()
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("change of the output, relative to its size")
    dots = [Line2D([], [], color=colour, marker="o", linestyle="", markersize=7) for colour in ("C0", "C1")]
    axes.legend(dots, ["same measure", "another measure"], loc="center", bbox_to_anchor=(0.45, 0.75))
    return figure


def _lengths(vectors: Float[np.ndarray, "n e"]) -> Float[np.ndarray, " n"]:
    return np.linalg.norm(vectors, axis=1)
