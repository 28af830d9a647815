"""Pictures of `finite_samples`: what n prompts are worth, theory and training side by side."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from lib.experiments.result import Result
from lib.plotting.style import ink

COLOURS = {"softmax": "C0", "linear": "C1", "Bayes-optimal": "C2"}
MARKERS = ("o", "s", "^", "D", "v")
LABELS = {"m_k": "$m_k$", "q_k": "$q_k$", "m_v": "$m_v$", "q_v": "$q_v$", "train_loss": "training loss"}


def risk_against_samples(result: Result) -> Figure:
    r"""What n prompts are worth to each head, at its best ridges.

    Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: excess risk; answering 0 costs 1. Lines: replica
    theory for softmax and for linear attention, and the Bayes-optimal risk by state evolution. Marks: means of
    training runs in growing dimension, with their standard errors. Dotted: the best risk of each head with infinitely
    many prompts; softmax shares its own with the Bayes-optimal estimator, linear attention stops far above.

    Alt: Line chart with three falling curves. The Bayes-optimal curve is lowest, softmax comes next, linear attention
    is highest from one and a half prompts a dimension on. Marks of simulated training lie on the two upper curves.
    Two dotted levels: the lower one is approached by both the Bayes-optimal and the softmax curve, the upper one by
    the linear curve.
    """
    frame = result.tables["risk_against_samples"].frame
    figure, axes = plt.subplots(figsize=(8.0, 4.5))
    theory, runs = frame[frame["kind"] == "theory"], frame[frame["kind"] == "runs"]
    sizes = sorted(runs["dimension"].unique().tolist())
    for head, colour in COLOURS.items():
        curve = theory[theory["head"] == head]
        axes.plot(curve["alpha"], curve["risk"], color=colour, linewidth=2)
        for marker, size, nudge in zip(MARKERS, sizes, _nudges(sizes), strict=False):
            mine = runs[(runs["head"] == head) & (runs["dimension"] == size)]
            axes.errorbar(
                mine["alpha"] * nudge,
                mine["risk"],
                mine["std_error"],
                color=colour,
                marker=marker,
                linestyle="",
                markersize=5,
                capsize=2,
                fillstyle="none",
            )
    for _, floor in frame[frame["kind"] == "n = ∞"].iterrows():
        axes.axhline(floor["risk"], color=COLOURS[floor["head"]], linestyle=":", linewidth=1.5)
    lines = [Line2D([], [], color=colour, linewidth=2) for colour in COLOURS.values()]
    marks = [
        Line2D([], [], color=ink(), marker=marker, linestyle="", fillstyle="none")
        for marker, _ in zip(MARKERS, sizes, strict=False)
    ]
    dotted = Line2D([], [], color=ink(), linestyle=":")
    labels = [*COLOURS, *(f"training, $D={size}$" for size in sizes), r"$n=\infty$"]
    axes.legend([*lines, *marks, dotted], labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0, None))
    _plain_ticks(axes, theory["alpha"])
    return figure


def overlaps_against_samples(result: Result) -> Figure:
    r"""Inside the trained heads: overlaps and training loss at the best ridges.

    Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: $m_k=k\cdot k^\star/D$, $q_k=|k|^2/D$, the same for
    the value vector, and half the mean square error on the training prompts. Lines: replica theory. Marks: training
    runs at three dimensions, taken to $D\to\infty$ by a straight line in $1/D$, with standard errors. The jumps of
    slope come from the ridges, which change with $\alpha$.

    Alt: Five panels of curves for softmax and linear attention against prompts per dimension, with marks of simulated
    training near every curve, closer than about two error bars. The overlaps of softmax with both hidden directions
    grow to about one; linear attention keeps a large key and a small value vector.
    """
    frame = result.tables["overlaps_against_samples"].frame
    figure, panels = plt.subplots(2, 3, figsize=(9.0, 5.0), sharex=True)
    for panel, (quantity, label) in zip(panels.flat, LABELS.items(), strict=False):
        for head in ("softmax", "linear"):
            mine = frame[(frame["head"] == head) & (frame["quantity"] == quantity)]
            curve, runs = mine[mine["kind"] == "theory"], mine[mine["kind"] == "runs"]
            panel.plot(curve["alpha"], curve["value"], color=COLOURS[head], linewidth=2)
            panel.errorbar(
                runs["alpha"],
                runs["value"],
                runs["std_error"],
                color=COLOURS[head],
                marker="o",
                linestyle="",
                markersize=4,
                capsize=3,
                fillstyle="none",
            )
        panel.set(xscale="log", title=label, ylim=(0, None))
        _plain_ticks(panel, frame["alpha"])
    for panel in (*panels[1, :2], panels[0, 2]):
        panel.set_xlabel(r"$\alpha=n/D$")
    panels[0, 2].tick_params(labelbottom=True)
    handles = [
        Line2D([], [], color=COLOURS[head], marker="o", markersize=4, fillstyle="none")
        for head in ("softmax", "linear")
    ]
    panels[1, 2].set_axis_off()
    panels[1, 2].legend(handles, ["softmax", "linear"], loc="center")
    return figure


def weak_ridge_starts(result: Result) -> Figure:
    r"""Weak regularisation: where L-BFGS ends depends on where it began.

    Each point is one set of prompts, on which softmax attention was trained twice: from the hidden directions and from
    random ones. Across, logarithmic: the ridge, equal for keys and values. Left: how much higher the objective of the
    uninformed run ended, relative to the informed one, on an axis that is linear between the dotted lines at one part
    in ten thousand and logarithmic outside. Right: the risks of both minima, joined for each set of prompts. No theory
    is drawn: the replica-symmetric equations assume one minimum.

    Alt: Two panels of points in five columns, one a ridge from 0.01 to 1. Left, points lie between the dotted lines
    for the largest ridge and far above zero, at up to a fifth, for the smallest. Right, both risks coincide for large
    ridges, and for small ones the uninformed run is much worse than the informed one.
    """
    frame = result.tables["weak_ridge_starts"].frame
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0))
    spread = np.exp(0.25 * ((frame["seed"] * (5**0.5 - 1) / 2) % 1 - 0.5))
    gap = frame["objective_uninformed"] / frame["objective_informed"] - 1
    left.plot(frame["ridge"] * spread, gap, "o", color="C0", markersize=5, alpha=0.7, markeredgewidth=0)
    left.set_yscale("symlog", linthresh=1e-4)
    for edge in (-1e-4, 1e-4):
        left.axhline(edge, color=ink(), linestyle=":", linewidth=1)
    left.set(xscale="log", xlabel=r"ridge, $r_k=r_v$", ylabel="excess of the objective")
    right.vlines(frame["ridge"] * spread, frame["risk_informed"], frame["risk_uninformed"], color=ink(), linewidth=0.6)
    for start, colour, marker in (("informed", "C0", "o"), ("uninformed", "C1", "s")):
        right.plot(
            frame["ridge"] * spread,
            frame[f"risk_{start}"],
            marker,
            color=colour,
            markersize=4.5,
            fillstyle="none",
            label=f"{start} start",
        )
    right.set(xscale="log", xlabel=r"ridge, $r_k=r_v$", ylabel="excess risk", ylim=(0, None))
    right.legend(loc="upper right")
    return figure


def _nudges(sizes: list[int]) -> np.ndarray:
    """Factors that keep marks of different sizes apart."""
    return np.linspace(0.97, 1.03, len(sizes))


def _plain_ticks(axes, alphas) -> None:
    ticks = [tick for tick in (0.25, 0.5, 1, 2, 4, 8) if alphas.min() <= tick <= alphas.max()]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in ticks])
