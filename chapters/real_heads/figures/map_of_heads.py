r"""The most linear head of the network is in the first layer, and the second layer is the least linear on average.

Each cell is one head, with its layer (row) and its number in the layer (column). The number is the explained share
$R^2$ at the longest prompts: the part of the variation of its outputs on the text that the Gaussian prediction, a
linear map of the query, explains. The last column is the mean of each layer.

Alt: A grid of six rows and twelve columns of coloured cells with numbers from nearly 0 to nearly 1, and a column of
means. Outlined are the darkest cell, in the first row, and the lightest mean, that of the second row.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapters.real_heads.statistics import Heads, HeadStatistics
from chapters.real_heads.style import TEXT
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, SHARE_COLUMNS, by_head
from chapters.style import readable_on
from companion import Numbers, Table
from companion.figures.style import PAPER, WIDE, ink, label


def numbers(heads: HeadStatistics, errors: Heads) -> Numbers:
    """Return the explained share of each head, with its standard error."""
    columns = HEAD_COLUMNS | SHARE_COLUMNS
    return Numbers(Table(by_head(share=heads.share, share_se=errors), columns))


def draw(table: pd.DataFrame) -> Figure:
    """Draw one cell per head with its share, and a column with the means of layers; outline the two extreme cells."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.4))
    shares = table.pivot(index="layer", columns="head", values="share").to_numpy()
    layers, heads = shares.shape
    cells = np.hstack([shares, shares.mean(axis=1, keepdims=True)])
    # left edges: the column of means is a little apart
    edges = np.array([*range(heads), heads + 0.6])
    colours = LinearSegmentedColormap.from_list("linear", [PAPER, TEXT])
    for (row, column), share in np.ndenumerate(cells):
        colour = colours(share)
        axes.add_patch(Rectangle((edges[column], row), 1, 1, facecolor=colour, edgecolor=PAPER, linewidth=2))
        look = {"ha": "center", "va": "center", "color": readable_on(colour), "fontsize": 10}
        axes.text(edges[column] + 0.5, row + 0.5, f"{share:.2f}", **look)
    most = np.unravel_index(shares.argmax(), shares.shape)
    least = (cells[:, heads].argmin(), heads)
    for row, column in (most, least):
        axes.add_patch(Rectangle((edges[column], row), 1, 1, fill=False, edgecolor=ink(), linewidth=2, zorder=3))
    axes.text(edges[most[1]] + 1, most[0] - 0.12, "most linear head", ha="right", va="bottom")
    label(axes, edges[heads] + 1, least[0] + 0.5, "least linear\nlayer", ink())
    axes.set(xlim=(0, edges[heads] + 1), ylim=(layers, 0))
    axes.set_yticks(np.arange(layers) + 0.5, [f"layer {layer + 1}" for layer in range(layers)])
    axes.set_xticks(edges + 0.5, [*(f"{head + 1}" for head in range(heads)), "mean"])
    axes.set(xlabel="head of the layer", title="explained share $R^2$, 1 for linear attention")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return figure
