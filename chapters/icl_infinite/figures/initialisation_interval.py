r"""The scale of the start, inside and outside the interval for $\alpha$.

Each point is a flow: the time after which $(A,b)$ stays within a thousandth of its limit, from a random $\Theta$
(circles) or from $\Theta$ along the first axis of $\Sigma$ (squares, at the lines). Filled: the start is no worse than
predicting 0; hollow: worse. Vertical lines: up to where $\alpha$ may go by [BB26] (solid) and by [ZFB24] (dashed), and
up to where every start is better than predicting 0 (dotted). The right panel's $\Sigma$ is the left one's divided by
16. Every run arrives; nothing happens at the lines.

Alt: Two panels of points, time against the logarithm of the start's scale. In both, times fall from small to large
scales without any break. Circles turn from filled to hollow at large scales, right of the dashed and the dotted line.
Three squares stand on the three lines; one, on the solid line of the second panel, is hollow. The solid line is far
left of the dotted one in the first panel and right of it in the second.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.icl_infinite.block_flows import REACHED, first_below
from chapters.icl_infinite.scaled_starts import ScaledStart
from chapters.icl_infinite.style import AXIS, RANDOM, SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label

# "Near the limit", for the time that a start takes.
NEAR = 1e-3
# Risks of starts are sums of products of 5×5 matrices: what rounding leaves of an exact 1, and drawn as the same.
ROUNDING = 1e-12
SAME = 1 + 1e-6


def numbers(runs: list[ScaledStart]) -> Numbers:
    """How long each start takes; that all of them arrive, and what the two intervals promise."""
    table = _table(runs)
    claims = (_every_scale_claim(table.frame), _sharp_claim(table.frame), _intervals_differ_claim(table.frame))
    return Numbers(table, claims)


def _table(runs: list[ScaledStart]) -> Table:
    """One run a row."""
    rows = [
        {
            "covariance": run.covariance,
            "direction": run.direction,
            "alpha": run.alpha,
            "paper": run.paper,
            "earlier": run.earlier,
            "sharp": run.sharp,
            "start_risk": run.flow.relative_risk[0],
            "time": first_below(run.flow.times, run.flow.distance, NEAR),
            "distance": run.flow.distance[-1],
        }
        for run in runs
    ]
    columns = {
        "covariance": Column("Σ, by its norm", "name"),
        "direction": Column("Θ of the start: random, or the first axis of Σ", "name"),
        "alpha": Column("Scale α of the start"),
        "paper": Column("√2/(d^(1/4)‖Σ‖), the bound on α of [BB26, Thm 5.1]"),
        "earlier": Column("√2/(d^(1/4)‖Σ‖^(1/2)), the bound on α of [ZFB24]"),
        "sharp": Column("√(2/‖Σ‖), up to where every start is better than predicting 0"),
        "start_risk": Column("Risk of the start, divided by that of predicting 0"),
        "time": Column(f"Time after which (A, b) stays within {NEAR:g} of its limit, relative to its size"),
        "distance": Column("Distance to the limit at the end of the run, relative to its size", absolute=1e-8),
    }
    return Table(pd.DataFrame(rows), columns)


def _every_scale_claim(frame: pd.DataFrame) -> Claim:
    """The end of every run against its limit. At the saddle A = 0, b = 0 the relative distance is 1 by definition."""
    return Claim(
        id="icl-infinite-every-alpha",
        statement=(
            f"Inside, at and outside the interval for α the flow ends at (A*, b*): the largest relative distance of "
            f"{len(frame)} starts, with α up to {(frame['alpha'] / frame['paper']).max():.0f} times the bound."
        ),
        source="derived here",
        box="infinite-flow-converges",
        measured=float(np.max(frame["distance"])),
        expected=0.0,
        tolerance=REACHED,
        relation="≤",
        alternative=Alternative("one of the runs ends in the saddle A = 0, b = 0", 1.0),
    )


def _worst(frame: pd.DataFrame, bound: str) -> float:
    """The largest risk of a start with α up to the bound, over that of predicting 0; the first axis is at bounds."""
    return float(frame.loc[frame["alpha"] <= frame[bound], "start_risk"].max())


def _sharp_claim(frame: pd.DataFrame) -> Claim:
    """Start risks inside the sharp interval, both covariances."""
    small = frame[frame["paper"] > frame["sharp"]]
    return Claim(
        id="icl-infinite-sharp-interval",
        statement=(
            "With α ≤ √(2/‖Σ‖) no start is worse than predicting 0, whatever Θ, and at the end of this interval the "
            "first axis is as bad: the largest risk of such a start, divided by that of predicting 0."
        ),
        source="derived here",
        box="intervals-for-the-start",
        measured=_worst(frame, "sharp"),
        expected=1.0,
        tolerance=ROUNDING,
        alternative=Alternative("the condition α < √2/(d^(1/4)‖Σ‖) of [BB26] did this too", _worst(small, "paper")),
    )


def _intervals_differ_claim(frame: pd.DataFrame) -> Claim:
    """Start risks along the first axis where ‖Σ‖ < d^{-1/2}, at the ends of both papers' intervals.

    Not among random starts: whether one of a few is worse is a matter of chance, and that one exists is not.
    """
    small = frame[(frame["paper"] > frame["sharp"]) & (frame["direction"] == AXIS)]
    return Claim(
        id="icl-infinite-two-conditions",
        statement=(
            "Where ‖Σ‖ < d^(-1/2) the condition α < √2/(d^(1/4)‖Σ‖) of [BB26] allows starts that are worse than "
            "predicting 0: the risk at its end with Θ along the first axis, divided by that of predicting 0."
        ),
        source="derived here",
        box="intervals-for-the-start",
        measured=_worst(small, "paper"),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        # at α = 0 the risk is that of predicting 0 itself: inside the other interval it is compared at the end, too
        alternative=Alternative(
            "the condition α < √2/(d^(1/4)‖Σ‖^(1/2)) of [ZFB24]",
            float(small.loc[small["alpha"] == small["earlier"], "start_risk"].max()),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a covariance, a point a start, and the bounds under their names."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    point = {"linestyle": "none", "color": "C0", "markersize": 6}
    shapes = {RANDOM: {"marker": "o"}, AXIS: {"marker": "s"}}
    lines = {
        "paper": ("[BB26]", {"color": "C1", "linewidth": 1.8}),
        "earlier": ("[ZFB24]", {"color": ink(), "linewidth": 1.8, "linestyle": "--"}),
        "sharp": (r"$\sqrt{2/\|\Sigma\|}$", {"color": ink(), "linewidth": 1.8, "linestyle": ":"}),
    }
    for panel, name in zip(panels, dict.fromkeys(table["covariance"]), strict=True):
        runs = table[table["covariance"] == name]
        top = runs["time"].max()
        for step, (column, (says, look)) in enumerate(lines.items()):
            bound, height = runs[column].max(), (0.08 + 0.12 * step) * top
            panel.axvline(bound, **look)
            sheet = {"facecolor": panel.get_facecolor(), "edgecolor": "none", "pad": 1}
            label(panel, bound, height, says, look["color"], xytext=(5, 0), fontsize=10, bbox=sheet)
        for direction, shape in shapes.items():
            mine = runs[runs["direction"] == direction]
            for some, fill in ((mine[mine["start_risk"] <= SAME], "full"), (mine[mine["start_risk"] > SAME], "none")):
                panel.plot(some["alpha"], some["time"], **point, **shape, fillstyle=fill)
        panel.set(xscale="log", title=name.replace("‖Σ‖", r"$\|\Sigma\|$"), xlabel=r"scale $\alpha$")
        panel.set_ylim(0, 1.15 * top)
    panels[0].set_ylabel("time to the limit")
    marks = {
        r"random $\Theta$": Line2D([], [], **point, **shapes[RANDOM]),
        "first axis": Line2D([], [], **point, **shapes[AXIS]),
        "worse than\npredicting 0": Line2D([], [], **point, marker="o", fillstyle="none"),
    }
    panels[0].legend(list(marks.values()), list(marks), loc="center left", fontsize=10, handletextpad=0.2)
    headline(figure, "Starts of every scale tried arrive, inside the bounds and beyond")
    return figure
