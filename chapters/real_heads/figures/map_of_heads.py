r"""The most linear head of the network is in the first layer, and the second layer is the least linear on average.

Each cell is one head of the network, with its layer (row) and its number in the layer (column). The colour and the
number are the explained share $R^2$ at the longest prompts: the part of the variation of its outputs on the text that
the Gaussian prediction, a linear map of the query, explains. It is 1 for a head that is linear attention.

Alt: A grid of six rows and twelve columns of coloured cells with numbers from nearly 0 to nearly 1. Dark and light
cells are in every row; the darkest is in the first row, and most cells of the second row are light.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from chapters.real_heads.statistics import Heads, HeadStatistics
from chapters.real_heads.style import TEXT
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, SHARE_COLUMNS, by_head
from chapters.style import readable_on
from companion import Numbers, Table
from companion.figures.style import COLUMN


def numbers(heads: HeadStatistics, errors: Heads) -> Numbers:
    """Return the explained share of each head, with its standard error."""
    columns = HEAD_COLUMNS | SHARE_COLUMNS
    return Numbers(Table(by_head(share=heads.share, share_se=errors), columns))


def draw(table: pd.DataFrame) -> Figure:
    """Draw one cell per head, with its share."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    shares = table.pivot(index="layer", columns="head", values="share").to_numpy()
    ends = [mpl.rcParams["axes.facecolor"], mpl.colors.to_hex(TEXT)]
    colours = LinearSegmentedColormap.from_list("linear", ends)
    cells = axes.pcolormesh(shares, cmap=colours, vmin=0, vmax=1, edgecolors=ends[0], linewidth=2)
    for (row, column), share in np.ndenumerate(shares):
        colour = readable_on(colours(share))
        axes.text(column + 0.5, row + 0.5, f"{share:.2f}", ha="center", va="center", color=colour, fontsize=10)
    axes.invert_yaxis()
    axes.set_yticks(np.arange(len(shares)) + 0.5, [f"layer {layer + 1}" for layer in range(len(shares))])
    axes.set_xticks(np.arange(shares.shape[1]) + 0.5, [f"{head + 1}" for head in range(shares.shape[1])])
    axes.set_xlabel("head of the layer")
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(cells, ax=axes, ticks=[0, 0.5, 1], label="explained share, $R^2$")
    bar.outline.set_visible(False)
    return figure
