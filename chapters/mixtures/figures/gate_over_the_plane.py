r"""For means of one norm the weight that softmax gives to a class equals the posterior probability of this class at one
scale of the scores.

Colour: the weight of the class with mean $(1,0)$ against that with mean $(0,1)$, on an infinite prompt, for a head with
the scores $\langle\text{token},t\,\text{query}\rangle$, over queries in the plane. Lines: contours from 0.1 to 0.9,
thick at one half. Dashed: where the posterior probability is 0.1 and 0.9. Circles: one standard deviation around the
means.

Alt: Three maps of the plane. In each the weight rises along the diagonal from the upper left, where it is near zero, to
the lower right, where it is near one. Contours are parallel straight lines, wide apart in the first map and close
together in the last.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from chapters.mixtures.gates import FACTORS, QUERIES
from chapters.mixtures.style import PUBLISHED_MEANS
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE

# Rounding of a sum of a few terms, and of a sigmoid.
ROUNDING = 1e-12
# Without the light end, on which white lines vanish.
COLOURS = ListedColormap(mpl.colormaps["cividis"](np.linspace(0, 0.72, 256)))


def numbers(gates: pd.DataFrame, prompts: pd.DataFrame) -> Numbers:
    """Return the weights over the plane, and the claims on infinite and finite prompts."""
    columns = {
        "factor": Column("Factor $t$ of the scores"),
        "x": Column("First coordinate of the query"),
        "y": Column("Second coordinate of the query"),
        "weight": Column("Weight of the class with mean (1, 0)"),
        "posterior": Column("Posterior probability of this class given the query"),
    }
    claim = Claims("mixture-discrimination")
    differences = (gates["weight"] - gates["posterior"]).abs().groupby(gates["factor"]).max()
    claim.at_most(
        "gate",
        "If the scores are ⟨token, $Γ⁻¹$ query⟩, the weight of a class on the infinite prompt is its posterior "
        "probability, for means of one norm (largest difference over queries in the plane).",
        differences[1.0],
        ROUNDING,
        because="rounding in double precision",
        source="[GBB26, Prop. 2.1]",
        box="gbb26-prop-2-1",
        rejects=("half the scores give the same weight", differences[min(FACTORS)]),
    )
    claim.agree(
        "finite-prompts",
        "On finite prompts, $L$ times the mean square error of the output agrees with its limit for long prompts, at "
        f"{len(QUERIES)} queries and half the scores",
        (prompts["scaled"] - prompts["limit"]) / prompts["std_error"],
        source="derived here",
        box="prop-fluctuation",
        rejects=("all tokens have the same weight", (prompts["scaled"] - prompts["untilted"]) / prompts["std_error"]),
    )
    return Numbers(Table(gates[list(columns)], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw a map of the weight for each factor."""
    speeds = ("changes\ntoo slowly", "equals\nthe posterior", "changes\ntoo fast")
    figure, panels = plt.subplots(1, len(speeds), figsize=(WIDE, 3.2), sharex=True, sharey=True)
    for axes, (factor, rows), speed in zip(panels, table.groupby("factor"), speeds, strict=True):
        grid, posterior = (rows.pivot_table(index="y", columns="x", values=name) for name in ("weight", "posterior"))
        look = {"cmap": COLOURS, "vmin": 0, "vmax": 1, "shading": "nearest", "rasterized": True}
        image = axes.pcolormesh(grid.columns, grid.index, grid.to_numpy(), **look)
        levels = np.arange(1, 10) / 10
        widths = np.where(np.isclose(levels, 0.5), 2.5, 0.8)
        axes.contour(grid.columns, grid.index, grid.to_numpy(), levels=levels, colors="white", linewidths=widths)
        look = {"levels": [0.1, 0.9], "colors": ["C1"], "linewidths": 2.5, "linestyles": "--"}
        axes.contour(posterior.columns, posterior.index, posterior.to_numpy(), **look)
        for mean, text in zip(PUBLISHED_MEANS, "+-", strict=True):
            axes.add_patch(Circle(mean, 1.0, fill=False, color="white", linestyle="--", linewidth=1))
            axes.text(*mean, f"${text}$", color="white", ha="center", va="center", fontsize=14)
        axes.set(aspect="equal", xlabel="$x_1$", title=f"$t={factor:g}$: {speed}")
        axes.grid(visible=False)
    panels[0].set_ylabel("$x_2$")
    for place, side, text in ((-2.9, "left", "posterior\n0.1"), (2.9, "right", "posterior\n0.9")):
        panels[0].text(place, -place * 0.62, text, color="w", ha=side, va="center", fontsize=10)
    figure.colorbar(image, ax=panels, label="weight of the class +", shrink=0.75)
    return figure
