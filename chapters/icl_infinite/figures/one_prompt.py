r"""With many pairs of one hidden task, softmax and linear attention output nearly the missing label of the query.

Left: a prompt with one token per column. The upper rows are the entries of the covariate, the last row is its label,
which depends on a vector $w$ that is drawn for this prompt and not shown: the hidden task of in-context regression. In
the last column, the query, the label is missing. Right: outputs for this query of the head at which the flow of this
chapter ends, for prompts of increasing length with the same $w$, with softmax and with linear attention. The dashed
line is the missing label.

Alt: Left, a grid of coloured cells with numbers, one column per token, under a bracket named "pairs of one hidden
task". The last column is named "query"; its lowest cell has a frame and contains a question mark. Right, a line chart
of two outputs against the length of the prompt: both fluctuate at first and end on a dashed horizontal line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapters.icl_infinite.long_prompt import TASKS, Prompt
from chapters.style import readable_on, signed_colours
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# Bound on the rounding of a sum of five products.
ROUNDING = 1e-10
# Names of the two parts of the table.
PROMPT, OUTPUT = "prompt", "answer"


def numbers(prompt: Prompt) -> Numbers:
    """Return the entries of the prompt and the outputs by length, and the claim on infinite prompts."""
    tokens = np.vstack([prompt.tokens, np.append(prompt.query[:-1], prompt.label)])
    entries = [*(f"x{row}" for row in range(1, tokens.shape[1])), "y"]
    groups = []
    for place, token in enumerate(tokens, start=1):
        groups.append({"part": PROMPT, "place": place, "entry": entries, "value": token})
    for name, outputs in prompt.outputs.items():
        groups.append({"part": OUTPUT, "place": prompt.lengths, "entry": name, "value": outputs})
    columns = {
        "part": Column("`prompt` for an entry of the prompt, `answer` for an output of a head", "name"),
        "place": Column(
            "For an entry: number of the token, the query last. For an output: prompt length $L$", "tokens"
        ),
        "entry": Column(
            "Coordinate of the covariate, the label $y$ (of the query: the target), or the attention", "name"
        ),
        "value": Column("Value of the entry or output", absolute=1e-9),
    }
    claim = Claims("icl-infinite", source="derived here", box="bb26-lemma-2-1")
    claim.at_most(
        "fills-in",
        "On an infinite prompt the head $(A*, b*)$ predicts the missing label exactly (measured: the largest error "
        f"over {TASKS} tasks and queries, relative to the root mean square of labels).",
        prompt.errors["balanced"],
        0,
        within=ROUNDING,
        because="bound on the rounding of sums of a few products",
        rejects=("a head of the same size with A along the identity", prompt.errors["isotropic"]),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the prompt as a grid and the outputs as curves."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.0), width_ratios=(1.25, 1))
    target = _draw_prompt(left, table[table["part"] == PROMPT])
    outputs = table[table["part"] == OUTPUT]
    for (name, rows), colour in zip(outputs.groupby("entry", sort=False), ("C0", "C1"), strict=True):
        right.plot(rows["place"], rows["value"], color=colour, linewidth=2, marker="o", markersize=4)
        farthest = rows.loc[(rows["value"] - target).abs().idxmax()]
        label(right, farthest["place"], farthest["value"], str(name), colour, xytext=(8, 4))
    right.axhline(target, color=ink(), linestyle="--", linewidth=1.5)
    label(right, outputs["place"].max(), target, "missing\nlabel", ink(), xytext=(14, 0))
    right.set(xscale="log", xlabel="number of pairs in the prompt, $L$", ylabel="predicted label of the query")
    right.minorticks_off()
    return figure


def _draw_prompt(axes: Axes, cells: pd.DataFrame) -> float:
    """Draw one cell per entry, with a question mark for the label of the query; return this label."""
    names = list(dict.fromkeys(cells["entry"]))
    values = cells.pivot(index="entry", columns="place", values="value").loc[names].to_numpy().copy()
    target = float(values[-1, -1])
    values[-1, -1] = np.nan
    size = np.nanmax(np.abs(values))
    signed = signed_colours()
    axes.pcolormesh(np.ma.masked_invalid(values), cmap=signed, vmin=-size, vmax=size, edgecolors="face")
    rows, columns = values.shape
    centre = {"ha": "center", "va": "center"}
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        colour = readable_on(signed((value / size + 1) / 2))
        text = f"{round(value, 1) + 0.0:.1f}".replace("-", "−")
        axes.text(column + 0.5, row + 0.5, text, color=colour, fontsize=9, **centre)
    axes.text(columns - 0.5, rows - 0.5, "?", color=ink(), fontsize=18, weight="bold", **centre)
    outline = {"fill": False, "edgecolor": ink(), "linewidth": 3, "clip_on": False, "zorder": 3}
    axes.add_patch(Rectangle((columns - 1, rows - 1), 1, 1, **outline))
    for left, right, words in ((0, columns - 1, "pairs $(x,y)$ of one hidden task"), (columns - 1, columns, "query")):
        axes.plot([left + 0.1, right - 0.1], [-0.15, -0.15], color=ink(), linewidth=1.5, clip_on=False)
        label(axes, (left + right) / 2, -0.15, words, ink(), xytext=(0, 5), ha="center", va="bottom")
    axes.axhline(rows - 1, color=ink(), linewidth=1.5)
    axes.axvline(columns - 1, color=ink(), linewidth=1.5)
    axes.set_xticks(np.arange(columns) + 0.5, [*(f"$z_{i}$" for i in range(1, columns)), "label\nmissing"])
    axes.set_ylim(rows, -0.2)
    axes.set_yticks(np.arange(rows) + 0.5, [*(f"$x_{{{i}}}$" for i in range(1, rows)), "label $y$"])
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return target
