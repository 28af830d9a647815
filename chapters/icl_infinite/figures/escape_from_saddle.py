r"""Starts with the wrong sign wait at the saddle, for longer the more balanced they are, and then escape.

Starts are $A=-sI/\sqrt d$ and $b=s$, with one of the two made slightly larger; at the saddle $A=0$ and $b=0$. Left: the
gain $b$. Right, in the same colours: the time after which the risk stays below half the risk of predicting 0, against
the imbalance $|\|A\|_F^2-b^2|$ relative to $s^2$. The dashed line has the slope $1/\sqrt d$ in the logarithm of the
inverse imbalance.

Alt: Left, curves of the gain fall to a plateau at zero, leave it one after the other at equally spaced times, and
end at one of two opposite levels. Right, escape times against imbalance on a logarithmic axis are on a straight
dashed line, for both kinds of starts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.icl_infinite.block_flows import first_below
from chapters.icl_infinite.saddle_flows import SMALL_IMBALANCE, ByStart
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence

LARGER = {"gain": r"$b>\|A\|_F$", "matrix": r"$\|A\|_F>b$"}


def numbers(flows: ByStart) -> Numbers:
    """Return risk, gain and escape time of each flow, and the claim on the slope of the escape time."""
    rate = next(iter(flows.values())).task.dimension ** 0.5
    escapes = {start: first_below(flow.times, flow.relative_risk, 0.5) for start, flow in flows.items()}
    smallest = min(imbalance for _, imbalance in flows if imbalance > 0)
    last = np.nanmean([escape for (_, imbalance), escape in escapes.items() if imbalance == smallest])
    groups = [
        {
            "larger": larger,
            "imbalance": imbalance,
            "time": flow.times,
            "risk": flow.relative_risk,
            "gain": flow.path.gain,
            "escape": escapes[larger, imbalance],
            "line": last + np.log(smallest / imbalance) / rate if imbalance else np.nan,
        }
        for (larger, imbalance), flow in flows.items()
    ]
    columns = {
        "larger": Column("Which of $b$ and $‖A‖$ is larger at the start", "name"),
        "imbalance": Column("$|‖A‖² - b²|$ at the start, divided by the smaller of the two squares"),
        "time": Column("Time of the gradient flow"),
        "risk": Column("Risk, divided by the risk of predicting 0", absolute=1e-8),
        "gain": Column("Gain $b$", absolute=1e-8),
        "escape": Column("Time after which the risk stays below half the risk of predicting 0", absolute=1e-5),
        "line": Column("Line of slope $1/√(tr Σ⁴)$ in ln(1/imbalance) through the last of these times", absolute=1e-5),
    }
    small = {start: escape for start, escape in escapes.items() if 0 < start[1] <= SMALL_IMBALANCE}
    slope = np.polyfit([np.log(1 / imbalance) for _, imbalance in small], list(small.values()), 1)[0]
    claim = Claims("icl-infinite", source="derived here", box="time-at-the-saddle")
    # in dimension one the alternative is the same
    claim.equal(
        "saddle",
        "The time that a start with the wrong sign spends at the saddle grows like ln(1/imbalance), with slope "
        "$1/√(tr Σ⁴)$ (measured: the slope in units of this value).",
        slope * rate,
        1,
        within=SMALL_IMBALANCE * np.log(1 / SMALL_IMBALANCE),
        because="the next term: cubic terms of the flow change the time by the imbalance times its logarithm",
        rejects=("every direction escapes separately, at the rate $‖Σ‖²$ of its pair $(A_{ii}, b)$", rate),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the gain over time and the escape times against the imbalance, with one colour per start in both panels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1.3, 1))
    imbalances = sorted((value for value in table["imbalance"].unique() if value > 0), reverse=True)
    colours = dict(zip(imbalances, sequence(len(imbalances)), strict=True))
    for (larger, imbalance), curve in table.groupby(["larger", "imbalance"], sort=False):
        dash = ":" if larger == "matrix" else "-"
        left.plot(curve["time"], curve["gain"], dash, color=colours.get(imbalance, ink()), linewidth=2)
    level = table["gain"].max()
    # negative times are space for the name of the starts
    end, before = table["time"].max(), -0.35 * table["time"].max()
    left.set(xlabel="time", ylabel="gain $b$", xlim=(before, end), ylim=(-1.9 * level, 1.9 * level))
    left.set_xticks([tick for tick in left.get_xticks() if 0 <= tick <= end])
    centre = {"ha": "center", "linespacing": 1.2, "fontsize": 10}
    label(left, end / 2, level, LARGER["gain"] + ":\nmatrix $A$ changes sign", ink(), xytext=(0, 42), **centre)
    label(left, end / 2, -level, LARGER["matrix"] + ":\ngain $b$ changes sign", ink(), xytext=(0, -24), **centre)
    arrow = {"arrowstyle": "->", "color": ink(), "linewidth": 1.2}
    left.annotate("", (0.85 * end, 1.09 * level), (0.2 * end, 1.09 * level), arrowprops=arrow)
    label(left, end / 2, 1.09 * level, "start more balanced", ink(), xytext=(0, 8), **centre)
    start = table[(table["time"] == 0) & (table["imbalance"] > 0)]["gain"].mean()
    left.plot(0, start, "o", color=ink(), markersize=6)
    label(left, 0, start, "starts,\nwrong sign:\n$b>0$, $A<0$", ink(), **centre | {"ha": "right", "xytext": (-8, 14)})
    label(left, 0, 0, "saddle,\n$b=0$, $A=0$", ink(), **centre | {"ha": "right", "xytext": (-8, -14)})
    escapes = table[table["imbalance"] > 0].drop_duplicates(["larger", "imbalance"])
    line = escapes[escapes["larger"] == "gain"].sort_values("imbalance")
    right.plot(line["imbalance"], line["line"], "--", color=ink(), linewidth=1.3)
    # a small marker inside a large one, because both kinds of starts take the same time
    for larger, size, fill in (("gain", 5, "full"), ("matrix", 11, "none")):
        for escape in escapes[escapes["larger"] == larger].itertuples():
            look = {"color": colours[escape.imbalance], "markersize": size, "fillstyle": fill, "markeredgewidth": 1.5}
            right.plot(escape.imbalance, escape.escape, "o", **look)
    middle = line.iloc[len(line) // 2]
    label(right, middle["imbalance"], middle["line"], r"slope $1/\sqrt{\mathrm{tr}\,\Sigma^4}$", ink(), xytext=(12, 8))
    right.set(xscale="log", xlabel="imbalance of the start", ylabel="escape time")
    look = {"color": ink(), "marker": "o", "linestyle": ""}
    inner, outer = Line2D([], [], markersize=5, **look), Line2D([], [], markersize=11, fillstyle="none", **look)
    right.legend([inner, outer], [LARGER["gain"], LARGER["matrix"]], loc="lower left")
    return figure
