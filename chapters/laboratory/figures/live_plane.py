r"""Around queries of size $\sqrt{2\ln L}$ the mean output of a Gaussian prompt gradually falls behind linear attention.

Left: each point is a query of size $\tau$ (the standard deviation of the scores) and a prompt of $L$ tokens; blue is
the ratio $1-P$ of the mean output to that of linear attention. Well beyond the dashed line few tokens have most of the
weight. Right: the mean output $\tau(1-P)$, at the chosen length, for tokens of variance 1.

Alt: Two panels. Left, a plane of query size and prompt length, strong blue above a dashed curve and faint below it,
with a point on it. Right, a curve that first follows a dotted diagonal and then stays below it, around a dashed
vertical line, with the same point.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.laboratory.query_plane import LARGEST_DECADE, LARGEST_TAU
from chapters.laboratory.table_interpolation import share_left
from chapters.laboratory.trials import Trial
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# Ratios of the mean output to that of linear attention at which the colour changes.
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# The setting of the static picture.
SHOWN = {"tau": 4.0, "decade": 6.0}


def numbers(trial: Trial) -> Numbers:
    """Return the table, and claims on its interpolation error and on the dashed line."""
    columns = {
        "tau": Column("Size of the query, $τ$"),
        "top": Column("$√(2 ln L)$, about the largest of $L$ standard normals; the weights freeze at $τ$ = top"),
        "log_participation": Column("$ln P$, where $P = 𝔼 Σp²$ is the participation", absolute=1e-6),
        "log_score_error": Column(
            "$ln Q$, where $Q = 𝔼(ĝ - τ)²$ is the mean squared error along the query", absolute=1e-6
        ),
        "slope": Column("Local exponent of the error, $-∂ ln Q/∂ ln L$", absolute=1e-6),
    }
    names = ("log_participation", "log_score_error", "slope")
    claim = Claims("live-plane", source="measured here")
    accurate = trial.requires(tau=56, top=56)
    claim.at_most(
        "read",
        "The laboratory interpolates $ln P$, $ln Q$ and the exponent of the error in its table with small errors "
        f"(largest error at {trial.settings} random settings, uniform in $τ ≤ {LARGEST_TAU:g}$ and in $ln L$ up to "
        f"$L = 10^{{{LARGEST_DECADE}}}$).",
        trial.error(*names),
        0,
        within=1e-3,
        because="at most one unit of the third digit of a reading",
        rejects=("straight lines between the same nodes", trial.error_of_lines(*names)),
        requires=accurate,
    )
    claim.at_most(
        "line",
        "At $τ = √(2 ln L)$ the mean output is smaller than the output of linear attention (largest ratio of "
        f"the two at powers of ten from $L = 10$ to $10^{{{LARGEST_DECADE}}}$).",
        share_left(trial.grid, 1.0, LARGEST_DECADE).max(),
        max(LEVELS),
        because="the darkest colour of the plane begins here",
        rejects=("the mean output is that of linear attention", 1.0),
        requires=accurate,
    )
    return Numbers(Table(trial.grid.frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the plane and the mean output at one length."""
    figure, (plane, cut) = plt.subplots(1, 2, figsize=(WIDE, 4.2))
    grid = 1 - np.exp(table.pivot(index="top", columns="tau", values="log_participation"))
    tops, taus = np.asarray(grid.index, float), np.asarray(grid.columns, float)
    decades = tops**2 / 2 / np.log(10.0)
    for level in LEVELS:
        plane.contourf(taus, decades, grid, [level, 1.01], colors=["C0"], alpha=0.16)
    plane.plot(tops, decades, color=ink(), linestyle="--", linewidth=2)
    size = {"xlim": (0, taus[-1]), "xlabel": r"size of the query, $\tau$"}
    plane.set(ylim=(0, decades[-1]), ylabel="prompt length $L$", **size)
    plane.set_yticks([0, 10, 20, 30, 40], ["$1$", *(f"$10^{{{decade}}}$" for decade in (10, 20, 30, 40))])
    plane.grid(visible=False)
    label(plane, 0.6, 33.0, "many tokens contribute:\nlinear attention", ink())
    label(plane, taus[-1], 7.0, "few tokens dominate", ink(), xytext=(-4, 0), ha="right")
    label(plane, 8.9, 17.5, r"$\sqrt{2\,\ln L}$", ink(), ha="right", va="bottom", xytext=(-6, 2))
    plane.set_title("mean output in % of linear attention", fontsize=11)
    for level in LEVELS[:-1]:
        label(plane, taus[-1], np.interp(level, grid.iloc[:, -1], decades), f"{level:.0%}", ink(), xytext=(4, 0))
    edge = np.interp(-LEVELS[-1], -grid.iloc[-1], taus)
    label(plane, edge, decades[-1], f"{LEVELS[-1]:.0%}", ink(), ha="right", va="top", xytext=(-8, -6))
    row = int(np.argmin(np.abs(decades - SHOWN["decade"])))
    plane.plot(SHOWN["tau"], decades[row], "o", color="C4", markersize=9)
    mean = taus * grid.iloc[row].to_numpy()
    cut.plot(taus, taus, ":", color=ink(), linewidth=1.5)
    cut.plot(taus, mean, color="C0", linewidth=2.5)
    cut.axvline(tops[row], color=ink(), linestyle="--", linewidth=1.5)
    cut.plot(SHOWN["tau"], np.interp(SHOWN["tau"], taus, mean), "o", color="C4", markersize=9)
    label(cut, 7.0, 7.0, "infinite prompt", ink(), xytext=(8, -2))
    label(cut, tops[row], 1.0, r"$\sqrt{2\,\ln L}$", ink())
    label(cut, 12.0, mean[-8], f"$L=10^{{{decades[row]:.1f}}}$", "C0", ha="center", va="bottom", xytext=(0, 6))
    cut.set(ylim=(0, 8), ylabel="mean output", **size)
    return figure
