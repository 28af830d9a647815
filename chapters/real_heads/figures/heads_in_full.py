r"""The head of smallest spread is linear, the head of largest spread is frozen, and the median head is neither.

Each row is a head; its $\hat\tau/\sqrt{2\ln L}$ is on the right. Left: the distribution of its scores on a prompt of
the text, standardised for each query (filled), and the normal distribution. Middle: its weights in decreasing order,
averaged over queries, and those of Gaussian scores of the same spread. Right: its outputs against the linear
prediction, one point per query, both along the direction in which predictions vary most. Dashed: outputs equal to the
prediction, as in Lemma 2.1; solid: the same times $1-P$, as for a finite Gaussian prompt.

Alt: Three rows of three panels. In the first row scores are nearly normal, weights decrease slowly, and outputs are
along the lines. In the middle row scores have two humps and outputs are away from the lines. In the last row scores are
nearly normal, one weight is close to one, and outputs are along a line that is almost flat.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.example_heads import Example, rows_of
from chapters.real_heads.style import GAUSSIAN, TEXT
from chapters.real_heads.tracked_tables import HEAD_COLUMNS
from companion import Column, Numbers, Table
from companion.figures.style import WIDE, few_decades, ink

# Names of the rows, from the smallest spread to the largest.
REGIMES = ("linear", "not Gaussian", "frozen")


def numbers(examples: Sequence[Example]) -> Numbers:
    """Return the table with one row per bin, weight or query."""
    columns = {
        **HEAD_COLUMNS,
        "ratio": Column("$τ̂/√(2 ln L)$, averaged over all prompts", absolute=1e-3),
        "panel": Column("Panel of the row: `scores`, `weights` or `outputs`", "name"),
        "x": Column("Standardised score; rank of a weight; linear prediction of a query", absolute=1e-2),
        "found": Column("Density of scores; mean weight; output", absolute=1e-2),
        "gaussian": Column("Normal density; weight of Gaussian scores; prediction times $1 - P$", absolute=1e-2),
    }
    return Numbers(Table.of(map(rows_of, examples), columns))


def draw(table: pd.DataFrame) -> Figure:
    """Draw one row of panels per head."""
    heads = sorted(table["ratio"].unique().tolist())
    figure, panels = plt.subplots(len(heads), 3, figsize=(WIDE, 6.5))
    for row, ratio, regime in zip(panels, heads, REGIMES, strict=True):
        of_head = table[table["ratio"] == ratio]
        parts = [of_head[of_head["panel"] == name] for name in ("scores", "weights", "outputs")]
        for axes, part in zip(row[:2], parts, strict=False):
            if axes is row[0]:
                axes.fill_between(part["x"], part["found"], color=TEXT, alpha=0.45, linewidth=0, step="mid")
            else:
                axes.plot(part["x"], part["found"], color=TEXT, linewidth=2.5, label="head")
            axes.plot(part["x"], part["gaussian"], color=GAUSSIAN, linewidth=2, label="Gaussian scores")
        outputs = parts[2].sort_values("x")
        row[2].plot(outputs["x"], outputs["found"], "o", color=TEXT, markersize=3, alpha=0.7)
        row[2].plot(outputs["x"], outputs["gaussian"], color=GAUSSIAN, linewidth=2)
        row[2].axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.2)
        row[1].set(xscale="log", yscale="log", ylim=(1e-4, 1.5))
        few_decades(row[1])
        reach = float(np.abs(outputs[["x", "found"]].to_numpy()).max())
        row[2].set(ylim=(-1.1 * reach, 1.1 * reach))
        row[0].set_ylabel(regime)
        name = f"layer {of_head['layer'].iloc[0] + 1},\nhead {of_head['head'].iloc[0] + 1}:\n"
        name += r"$\hat\tau/\sqrt{2\,\ln L}$" "\n" rf"$={ratio:.2f}$"
        row[2].annotate(name, (1.04, 0.5), xycoords="axes fraction", va="center", fontsize=10)
    titles = ("distribution of scores", "weights by rank", "output against prediction")
    for column, title, name in zip(panels.T, titles, ("standardised score", "rank", "prediction"), strict=True):
        column[0].set_title(title)
        column[-1].set_xlabel(name)
    panels[0][1].legend(loc="lower left", fontsize=8.5)
    return figure
