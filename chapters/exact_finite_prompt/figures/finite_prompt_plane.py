r"""Two functions of query size and length, participation and score error, give the mean output and the error.

The horizontal axis is the size $\tau$ of the query, the vertical axis is $\ln L$. Left: participation
$P=\mathbb{E}\sum_i p_i^2$, the mean inverse of the number of tokens that matter. Right: score error $Q=\mathbb{E}(\hat
g-\tau)^2$. Colour steps are finest near the value 1. The dashed line is $\tau=\sqrt{2\ln L}$, about the largest
standardised score. Well above it both functions are small, well below it they are not.

Alt: Two heat maps over query size and logarithm of length. In both, the largest values fill the lower right corner,
separated by a dashed parabola from the upper left, where they fall by dozens of decades towards small queries and
long prompts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.quadrature import LARGEST_LOG_LENGTH, Accuracy, Plane, WeightSums
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, background
from lib.finite_prompt import LARGEST_TAU

# Steps of the colour scale, as powers of ten: finest near one, where the functions change most visibly.
LEVELS = [-30, -20, -12, -8, -5, -3, -2, -1, -0.5, 0, 1, 2]
# Labels of steps below this one are on dark colours.
DARK = -4
# The labels of steps are on the line between these two points, (ln L, τ).
LABELLED = ((16.0, 11.5), (76.0, 1.0))
TITLES = {
    "participation": "participation $P$\n→ mean output: $1-P$ times the limit",
    "score_error": "score error $Q$\n→ error of the output, together with $P$",
}


def numbers(plane: Plane, sums: WeightSums, accuracy: Accuracy) -> Numbers:
    """Return the plane, and the claims that the weights sum to one and that the quadrature is accurate."""
    columns = {
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$"),
        "log_length": Column("$ln L$, the natural logarithm of the prompt length"),
        "participation": Column("$P = 𝔼 Σp²$, the mean inverse of the number of tokens that matter"),
        "score_error": Column("$Q = 𝔼(ĝ - τ)²$, mean square error of the weighted mean score"),
    }
    claim = Claims("exact-finite-prompt", source="derived here")
    claim.at_most(
        "weights",
        f"The weights of a prompt sum to one: at {sums.exact.size:,} points of the plane, participation and the "
        "separately integrated products of pairs of weights add up to 1 (measured: the largest deviation).",
        np.max(np.abs(sums.exact - 1)),
        0,
        within=1e-10,
        because="five hundred times the rounding of a sum of 10⁵ positive terms, $2·10⁻¹³$",
        rejects=(
            "the participation of long prompts, $e^{τ²}/L$, or 1 where that is larger",
            np.max(np.abs(sums.long - 1)),
        ),
        box="two-integrals",
    )
    claim.at_most(
        "accuracy",
        f"At {accuracy.reported.size} random points with $τ ≤ {LARGEST_TAU:g}$ and $ln L ≤ "
        f"{LARGEST_LOG_LENGTH:g}$, the relative error that the quadrature estimates, from a finer step and "
        "from a longer range, is at most rounding (measured: the largest estimate).",
        np.max(accuracy.reported),
        0,
        within=1e-11,
        because="fifty times the rounding of a sum of 10⁵ positive terms, $2·10⁻¹³$",
        rejects=("a quadrature with half as many nodes", np.max(accuracy.coarse)),
        source="measured here",
    )
    return Numbers(Table.of([{name: getattr(plane, name) for name in columns}], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one heat map per function, with one colour scale whose steps are labelled along a straight line."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.7), sharex=True, sharey=True)
    scale = {"levels": LEVELS, "norm": BoundaryNorm(LEVELS, 256, extend="both"), "extend": "both"}
    names = {level: "0.3" if level == -0.5 else f"$10^{{{level}}}$" if level else "1" for level in LEVELS}
    for panel, (column, title) in zip(panels, TITLES.items(), strict=True):
        grid = np.log10(table.pivot(index="log_length", columns="tau", values=column))
        taus, lengths = np.asarray(grid.columns, float), np.asarray(grid.index, float)
        colours = panel.contourf(taus, lengths, grid, cmap="viridis", **scale)
        # heights along the line of the labels, which fall with the length
        across = np.interp(lengths, *zip(*LABELLED, strict=True))
        heights = [np.interp(tau, taus, row) for tau, row in zip(across, grid.to_numpy(), strict=True)][::-1]
        first, last = (np.interp(length, lengths, heights[::-1]) for length, _ in LABELLED)
        for level in LEVELS:
            if last < level < first:
                log_length = np.interp(level, heights, lengths[::-1])
                tau = np.interp(log_length, *zip(*LABELLED, strict=True))
                # where a label meets the dashed line, a box of the background colour hides the line
                box = background() | {"facecolor": colours.to_rgba(level), "pad": 0}
                look = {"color": "w" if level < DARK else "k", "bbox": box, "fontsize": 9}
                panel.text(tau, log_length, names[level], ha="center", va="center", zorder=3, **look)
        panel.plot(taus, taus**2 / 2, color="k", linestyle="--", linewidth=2)
        panel.text(0.04, 0.35, "many\ntokens\nmatter", color="w", fontweight="bold", transform=panel.transAxes)
        panel.text(0.97, 0.1, "few tokens matter", ha="right", fontweight="bold", transform=panel.transAxes)
        panel.set(ylim=(0, lengths.max()), xlim=(0, taus.max()), xlabel=r"size of the query, $\tau$")
        panel.set_title(title, fontsize=12)
        panel.grid(False)
    panels[0].set_ylabel(r"$\ln L$, logarithm of the prompt length")
    tau = 0.72 * taus.max()
    panels[0].annotate(r"$\tau=\sqrt{2\,\ln L}$", (tau, tau**2 / 2), (10, -22), textcoords="offset points", fontsize=11)
    return figure
