r"""Two functions of query size and length, participation and score error, give the mean output and the error.

The horizontal axis is the size $\tau$ of the query, the vertical axis is $\ln L$. Left: participation
$P=\mathbb{E}\sum_i p_i^2$, the inverse of the number of tokens that matter. Right: score error
$Q=\mathbb{E}(\hat g-\tau)^2$. Colour steps are finest near the value 1. The dashed line is $\tau=\sqrt{2\ln L}$, the
size of the largest score. Above the line both functions fall like powers of $L$; below it they fall much
more slowly.

Alt: Two heat maps over query size and logarithm of length. In both, the largest values fill the lower right corner,
separated by a dashed parabola from the upper left, where they fall by dozens of decades towards small queries and
long prompts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from chapters.exact_finite_prompt.quadrature import Accuracy, Plane, WeightSums
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE
from lib.finite_prompt import LARGEST_LOG_LENGTH, LARGEST_TAU

# Steps of the colour scale, as powers of ten: finest near one, where the functions change most visibly.
LEVELS = [-30, -20, -12, -8, -5, -3, -2, -1, -0.5, 0, 1, 2]
# Labels of steps below this one are on dark colours.
DARK = -4


def numbers(plane: Plane, sums: WeightSums, accuracy: Accuracy) -> Numbers:
    """Return the plane, and the claims that the weights sum to one and that the quadrature is accurate."""
    return Numbers(_table(plane), (_weights_claim(sums), _accuracy_claim(accuracy)))


def _table(plane: Plane) -> Table:
    """Return the table of the plane."""
    frame = pd.DataFrame(
        {
            "tau": plane.tau,
            "log_length": plane.log_length,
            "participation": plane.participation,
            "score_error": plane.score_error,
        }
    )
    columns = {
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$"),
        "log_length": Column("$ln L$, the natural logarithm of the prompt length"),
        "participation": Column("$P = 𝔼 Σp²$, the inverse of the number of tokens that matter"),
        "score_error": Column("$Q = 𝔼(ĝ - τ)²$, mean square error of the weighted mean score"),
    }
    return Table(frame, columns)


def _weights_claim(sums: WeightSums) -> Claim:
    """Claim that the weights sum to one at every point of the plane."""
    return Claim(
        id="exact-finite-prompt-weights",
        statement=(
            f"The weights of a prompt sum to one: at {sums.exact.size:,} points of the plane, participation and the "
            "separately integrated products of pairs of weights add up to 1 (measured: the largest deviation)."
        ),
        source="derived here",
        box="two-integrals",
        measured=float(np.max(np.abs(sums.exact - 1))),
        expected=0.0,
        tolerance=1e-10,
        reason="five hundred times the rounding of a sum of 10⁵ positive terms, $2·10⁻¹³$",
        relation="≤",
        alternative=Alternative(
            "the participation of long prompts, $e^{τ²}/L$, or 1 where that is larger",
            float(np.max(np.abs(sums.long - 1))),
        ),
    )


def _accuracy_claim(accuracy: Accuracy) -> Claim:
    """Claim that the error estimate of the quadrature is rounding over the whole domain."""
    return Claim(
        id="exact-finite-prompt-accuracy",
        statement=(
            f"At {accuracy.reported.size} random points with $τ ≤ {LARGEST_TAU:g}$ and $ln L ≤ "
            f"{LARGEST_LOG_LENGTH:g}$, the relative error that the quadrature estimates, from a finer step and "
            "from a longer range, is at most rounding (measured: the largest estimate)."
        ),
        source="measured here",
        measured=float(np.max(accuracy.reported)),
        expected=0.0,
        tolerance=1e-11,
        reason="fifty times the rounding of a sum of 10⁵ positive terms, $2·10⁻¹³$",
        relation="≤",
        alternative=Alternative("a quadrature with half as many nodes", float(np.max(accuracy.coarse))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one heat map per function, with one colour scale whose steps are labelled on the contour lines."""
    titles = {"participation": "participation $P$", "score_error": "score error $Q$"}
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True, sharey=True)
    scale = {"levels": LEVELS, "norm": BoundaryNorm(LEVELS, 256, extend="both"), "extend": "both"}
    names = {level: "0.3" if level == -0.5 else f"$10^{{{level}}}$" if level else "1" for level in LEVELS}
    for panel, (column, title) in zip(panels, titles.items(), strict=True):
        grid = np.log10(table.pivot(index="log_length", columns="tau", values=column))
        taus, lengths = np.asarray(grid.columns, float), np.asarray(grid.index, float)
        panel.contourf(taus, lengths, grid, cmap="viridis", **scale)
        lines = panel.contour(taus, lengths, grid, levels=LEVELS, cmap="viridis", norm=scale["norm"])
        # P reaches 1 only on the edges, where no label fits
        drawn = [level for level in LEVELS if float(np.min(grid)) < level < float(np.max(grid)) - 0.1]
        inks = ["w" if level < DARK else "k" for level in drawn]
        levels = {name: level for level, name in names.items()}
        for name in panel.clabel(lines, drawn, fmt=names, fontsize=9, colors=inks, inline=False):
            # where a label meets the dashed line, the background colour hides the line
            background = lines.to_rgba(levels[name.get_text()])
            name.set(rotation=0, zorder=3, path_effects=[withStroke(linewidth=3.5, foreground=background)])
        lines.set_visible(False)  # the lines only place the labels
        panel.plot(taus, taus**2 / 2, color="k", linestyle="--", linewidth=2)
        panel.set(ylim=(0, lengths.max()), xlim=(0, taus.max()), title=title, xlabel=r"size of the query, $\tau$")
        panel.grid(False)
    panels[0].set_ylabel(r"$\ln L$")
    tau = 0.58 * taus.max()
    panels[0].annotate(
        r"$\tau=\sqrt{2\,\ln L}$",
        (tau, tau**2 / 2),
        (10, -22),
        textcoords="offset points",
        fontsize=11,
        color="k",
        path_effects=[withStroke(linewidth=3.5, foreground=lines.to_rgba(-0.25))],
    )
    return figure
