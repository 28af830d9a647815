r"""The head of smallest spread is linear, the head of largest spread is frozen, and the median head is neither.

Each row is a head, with its spread $\hat\tau/\sqrt{2\ln L}$. Left: outputs, one point per query, along the direction in
which predictions vary most; orange: the prediction times one minus the participation. Middle: weights in decreasing
order, and those of Gaussian scores of the same spread. Right: scores, standardised for each query, and the normal
distribution.

Alt: Three rows of three panels. In the first row outputs are along the dashed diagonal, weights decrease slowly, and
scores are nearly normal. In the middle row outputs are away from the lines, and scores have two humps. In the last row
outputs are along a line that is almost flat, one weight is close to one, and scores are nearly normal.
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
from companion.figures.style import WIDE, few_decades, ink, legible

# Names of the rows, from the smallest spread to the largest.
REGIMES = ("smallest spread:\nlinear", "median spread:\nneither", "largest spread:\nfrozen")


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
    figure, panels = plt.subplots(len(REGIMES), 3, figsize=(WIDE, 6.8))
    for row, (ratio, of_head), regime in zip(panels, table.sort_values("x").groupby("ratio"), REGIMES, strict=True):
        outputs, weights, scores = (of_head[of_head["panel"] == name] for name in ("outputs", "weights", "scores"))
        reach = 1.1 * float(np.abs(outputs[["x", "found"]].to_numpy()).max())
        row[0].axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.2)
        row[0].plot(outputs["x"], outputs["found"], "o", color=TEXT, markersize=3, alpha=0.7)
        row[0].set(xlim=(-reach, reach), ylim=(-reach, reach))
        row[0].set_ylabel(regime, fontweight="bold")
        row[1].plot(weights["x"], weights["found"], color=TEXT, linewidth=2.5)
        row[1].set(xscale="log", yscale="log", ylim=(1e-4, 1.5))
        few_decades(row[1])
        row[2].fill_between(scores["x"], scores["found"], color=TEXT, alpha=0.45, linewidth=0, step="mid")
        for panel, rows in zip(row, (outputs, weights, scores), strict=True):
            panel.plot(rows["x"], rows["gaussian"], color=GAUSSIAN, linewidth=2)
        name = f"layer {of_head['layer'].iloc[0] + 1},\nhead {of_head['head'].iloc[0] + 1},\nspread {ratio:.2f}"
        row[2].annotate(name, (1.04, 0.5), xycoords="axes fraction", va="center")
    titles = ("output against prediction", "weights by rank", "distribution of scores")
    for column, title, name in zip(panels.T, titles, ("linear prediction", "rank", "standardised score"), strict=True):
        column[0].set_title(title)
        column[-1].set_xlabel(name)
    look = {"xycoords": "axes fraction", "fontsize": 11}
    for panel, place in ((panels[0][0], (0.31, 0.04)), (panels[0][1], (0.05, 0.04))):
        panel.annotate("head", (place[0], place[1] + 0.14), color=legible(TEXT), **look)
        panel.annotate("Gaussian prompt", place, color=legible(GAUSSIAN), **look)
    panels[-1][0].annotate("dashed: output\nis prediction", (0.03, 0.97), va="top", **look)
    return figure
