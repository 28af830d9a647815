"""Pictures of in-context regression on infinite prompts. Each draws the table of its own name."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", "--", "-.")


def infinite_flow(result: Result) -> Figure:
    r"""The flow of the infinite-prompt risk, for three covariances.

    Against time: the risk, divided by that of predicting 0; the distance of $(A,b)$ to the limit $(A^*,b^*)$, relative
    to its size; and by how much $\|A\|_F^2-b^2$ has changed since the start, divided by $b^{*2}$, which is the
    integrator's error. The spectrum of $\Sigma$ decides how long it takes, not where it ends. Distances stop at the
    precision of the integration.

    Alt: Three log-log panels over time. Risk and distance stay near one and then drop to the bottom, in order: the
    identity, the Toeplitz matrix, and much later, in steps, the ill-conditioned matrix. The change of the invariant
    stays below one part in a billion throughout.
    """
    frame = result.tables["infinite_flow"].frame
    figure, panels = plt.subplots(1, 3, figsize=(SIZE[0] * 1.2, SIZE[1]), sharex=True)
    columns = {"risk": "risk", "distance": r"distance to $(A^*,b^*)$", "drift": r"change of $\|A\|_F^2-b^2$"}
    floors = {"risk": 1e-12, "distance": 1e-9, "drift": 1e-14}
    frame = frame[frame["time"] > 0]
    for panel, (column, title) in zip(panels, columns.items(), strict=True):
        for name, dash in zip(dict.fromkeys(frame["covariance"]), DASHES, strict=False):
            curve = frame[frame["covariance"] == name]
            shown = np.maximum(curve[column], floors[column] / 100)
            panel.plot(curve["time"], shown, dash, linewidth=2, label=name)
        panel.set(xscale="log", yscale="log", title=title, xlabel="time")
        panel.set_ylim(floors[column], 3 if column != "drift" else 1e-6)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def initialisation_interval(result: Result) -> Figure:
    r"""The scale of the start, inside and outside the interval for $\alpha$.

    Each point is a flow from a random $\Theta$: the time after which $(A,b)$ stays within a thousandth of its limit.
    Filled: the start is better than predicting 0; hollow: worse. Vertical lines: up to where $\alpha$ may go by
    [BB26] (solid) and by [ZFB24] (dashed). The right panel's $\Sigma$ is the left one's divided by 16. Every run
    arrives; nothing happens at the lines.

    Alt: Two panels of points, time against the logarithm of the start's scale. In both, times fall by a third from
    small to large scales without any break. Starts turn from filled to hollow somewhat right of the dashed line;
    the solid line is left of it in the first panel and right of it in the second.
    """
    frame = result.tables["initialisation_interval"].frame
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    for panel, name in zip(panels, dict.fromkeys(frame["covariance"]), strict=True):
        runs = frame[frame["covariance"] == name]
        for better in (True, False):
            some = runs[(runs["start_risk"] < 1) == better]
            panel.plot(
                some["alpha"], some["time"], "o", color="C0", markersize=6, markerfacecolor="C0" if better else "none"
            )
        panel.axvline(runs["paper"].max(), color="C1", linewidth=1.8)
        panel.axvline(runs["earlier"].max(), color=ink(), linewidth=1.8, linestyle="--")
        panel.set(xscale="log", title=name.replace("‖Σ‖", r"$\|\Sigma\|$"), xlabel=r"scale $\alpha$")
        panel.set_ylim(0, 1.15 * runs["time"].max())
    panels[0].set_ylabel("time to the limit")
    marks = {"marker": "o", "linestyle": "none", "color": "C0", "markersize": 6}
    handles = [
        Line2D([], [], **marks),
        Line2D([], [], **marks, markerfacecolor="none"),
        Line2D([], [], color="C1", linewidth=1.8),
        Line2D([], [], color=ink(), linewidth=1.8, linestyle="--"),
    ]
    labels = ["better than predicting 0", "worse", "bound of [BB26]", "bound of [ZFB24]"]
    figure.legend(handles, labels, loc="outside upper center", ncols=4, columnspacing=1.2, handletextpad=0.5)
    return figure


def escape_from_saddle(result: Result) -> Figure:
    r"""Starts with the wrong sign, $A=-sI/\sqrt d$ and $b=s$, pass the saddle at the origin.

    Left: the gain $b$ over time, for starts that are more and more balanced from left to right. Solid: $b$ is the
    larger, so the matrix changes sign; dotted: $\|A\|_F$ is, so the gain does. On the plateau $A$ and $b$ are almost 0.
    Black: $A=0$, $b=0$, from where nothing moves. Right: the time after which the risk stays below half that of
    predicting 0, against the imbalance $|\|A\|_F^2-b^2|$ relative to $s^2$; dashed, a line of slope
    $1/\sqrt{\mathrm{tr}\,\Sigma^4}$.

    Alt: Left, curves of the gain fall to a plateau at zero, leave it one after the other at equally spaced times, and
    end at plus or minus 1.5. Right, escape times against imbalance on a logarithmic axis lie on a straight dashed
    line, for both kinds of starts.
    """
    frame = result.tables["escape_from_saddle"].frame
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    imbalances = sorted((value for value in frame["imbalance"].unique() if value > 0), reverse=True)
    colours = dict(zip(imbalances, sequence(len(imbalances)), strict=True))
    for (larger, imbalance), curve in frame.groupby(["larger", "imbalance"], sort=False):
        dash = ":" if larger == "matrix" else "-"
        left.plot(curve["time"], curve["gain"], dash, color=colours.get(imbalance, ink()), linewidth=2)
    left.set(xlabel="time", ylabel="gain $b$", xlim=(0, frame["time"].max()))
    escapes = frame[frame["imbalance"] > 0].drop_duplicates(["larger", "imbalance"])
    for larger, marker, colour in (("gain", "o", "C0"), ("matrix", "x", "C1")):
        some = escapes[escapes["larger"] == larger]
        right.plot(some["imbalance"], some["escape"], marker, color=colour, markersize=8, label=_LARGER[larger])
        label = r"slope $1/\sqrt{\mathrm{tr}\,\Sigma^4}$" if larger == "gain" else None
        right.plot(some["imbalance"], some["line"], "--", color=ink(), linewidth=1.3, label=label)
    right.set(xscale="log", xlabel="imbalance of the start", ylabel="escape time")
    right.legend(loc="lower left")
    return figure


_LARGER = {"gain": r"$b>\|A\|_F$", "matrix": r"$\|A\|_F>b$"}
