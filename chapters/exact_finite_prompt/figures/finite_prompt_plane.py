r"""Two functions give the mean and the mean square error: participation and score error over the plane.

Across: the size $\tau$ of the query. Up: $\ln L$. Left: participation $P=\mathbb{E}\sum_i p_i^2$, the inverse of
the number of tokens that matter. Right: score error $Q=\mathbb{E}(\hat g-\tau)^2$. Colours change the faster the
nearer the value is to 1. On the dashed line $\tau=\sqrt{2\ln L}$ the largest score takes over: above it both fall
like powers of $L$, below it length hardly helps.

Alt: Two heat maps over query size and logarithm of length. In both, values near one fill the lower right corner,
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
from chapters.exact_finite_prompt.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, label
from lib.finite_prompt import LARGEST_LOG_LENGTH, LARGEST_TAU

# Of the colours: powers of ten, the closer the nearer to one, where all that matters happens.
LEVELS = [-30, -20, -12, -8, -5, -3, -2, -1, -0.5, 0, 1, 2]
# Names of steps below this one stand on dark colours.
DARK = -4


def numbers(plane: Plane, sums: WeightSums, accuracy: Accuracy) -> Numbers:
    """The plane; the weights sum to one on it, and the quadrature is as accurate as it says."""
    return Numbers(_table(plane), (_weights_claim(sums), _accuracy_claim(accuracy)))


def _table(plane: Plane) -> Table:
    """The plane, with what each number means."""
    frame = pd.DataFrame(
        {
            "tau": plane.tau,
            "log_length": plane.log_length,
            "participation": plane.participation,
            "score_error": plane.score_error,
        }
    )
    columns = {
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖"),
        "log_length": Column("ln L, the natural logarithm of the prompt length"),
        "participation": Column("P = E Σp², the inverse of the number of tokens that matter"),
        "score_error": Column("Q = E(ĝ - τ)², squared error of the mean score"),
    }
    return Table(frame, columns)


def _weights_claim(sums: WeightSums) -> Claim:
    return Claim(
        id="exact-finite-prompt-weights",
        statement=(
            f"The weights of a prompt sum to one: at {sums.exact.size} points of the plane, participation and the "
            "separately integrated products of pairs of weights add up to 1; the largest deviation."
        ),
        source="derived here",
        box="two-integrals",
        measured=float(np.max(np.abs(sums.exact - 1))),
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative(
            "the participation of long prompts, e^{τ²}/L, or 1 where that is larger",
            float(np.max(np.abs(sums.long - 1))),
        ),
    )


def _accuracy_claim(accuracy: Accuracy) -> Claim:
    return Claim(
        id="exact-finite-prompt-accuracy",
        statement=(
            f"At {accuracy.reported.size} random points with τ ≤ {LARGEST_TAU:g} and ln L ≤ {LARGEST_LOG_LENGTH:g}, "
            "the relative error that the quadrature reports of itself, from a finer step and from a longer reach, is "
            "rounding."
        ),
        source="measured here",
        measured=float(np.max(accuracy.reported)),
        expected=0.0,
        tolerance=1e-11,
        relation="≤",
        alternative=Alternative("nodes half as dense", float(np.max(accuracy.coarse))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A heat map a function, of one colour scale, whose steps are named on the lines between them."""
    titles = {"participation": "participation $P$", "score_error": "score error $Q$"}
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True, sharey=True)
    scale = {"levels": LEVELS, "norm": BoundaryNorm(LEVELS, 256, extend="both"), "extend": "both"}
    names = {level: "0.3" if level == -0.5 else f"$10^{{{level}}}$" if level else "1" for level in LEVELS}
    # the colour map is the same on both sheets, and so are the colours that show on it
    for panel, (column, title) in zip(panels, titles.items(), strict=True):
        grid = np.log10(table.pivot(index="log_length", columns="tau", values=column))
        taus, lengths = np.asarray(grid.columns, float), np.asarray(grid.index, float)
        panel.contourf(taus, lengths, grid, cmap="viridis", **scale)
        lines = panel.contour(taus, lengths, grid, levels=LEVELS, cmap="viridis", norm=scale["norm"])
        # P comes to 1 on the edges alone, where no name fits
        met = [level for level in LEVELS if float(np.min(grid)) < level < float(np.max(grid)) - 0.1]
        inks = ["w" if level < DARK else "k" for level in met]
        levels = {name: level for level, name in names.items()}
        for name in panel.clabel(lines, met, fmt=names, fontsize=9, colors=inks, inline=False):
            # where a name stands on the dashed line, the line gives way
            there = lines.to_rgba(levels[name.get_text()])
            name.set(rotation=0, zorder=3, path_effects=[withStroke(linewidth=3.5, foreground=there)])
        lines.set_visible(False)  # they only say where names stand
        panel.plot(taus, taus**2 / 2, color="k", linestyle="--", linewidth=2)
        panel.set(ylim=(0, lengths.max()), xlim=(0, taus.max()), title=title, xlabel=r"size of the query, $\tau$")
        panel.grid(False)
    panels[0].set_ylabel(r"$\ln L$")
    tau = 0.58 * taus.max()
    label(panels[0], tau, tau**2 / 2, r"$\tau=\sqrt{2\,\ln L}$", "k", xytext=(8, -16))
    headline(figure, "Above the dashed line many tokens answer; below it, a few")
    return figure
