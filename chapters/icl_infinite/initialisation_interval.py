r"""The scale of the start, inside and outside the interval for $\alpha$.

Each point is a flow from a random $\Theta$: the time after which $(A,b)$ stays within a thousandth of its limit.
Filled: the start is better than predicting 0; hollow: worse. Vertical lines: up to where $\alpha$ may go by
[BB26] (solid) and by [ZFB24] (dashed). The right panel's $\Sigma$ is the left one's divided by 16. Every run
arrives; nothing happens at the lines.

Alt: Two panels of points, time against the logarithm of the start's scale. In both, times fall by a third from
small to large scales without any break. Starts turn from filled to hollow somewhat right of the dashed line;
the solid line is left of it in the first panel and right of it in the second.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.icl_infinite.block_flows import REACHED, first_below
from chapters.icl_infinite.marks import SIZE
from chapters.icl_infinite.scaled_starts import ScaledStart
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink

# "Near the limit", for the time that a start takes.
NEAR = 1e-3


def numbers(runs: list[ScaledStart]) -> Numbers:
    """How long each start takes; that all of them arrive, and what the two intervals promise."""
    table = _table(runs)
    return Numbers(table, (_every_scale_claim(table.frame), _intervals_differ_claim(table.frame)))


def _table(runs: list[ScaledStart]) -> Table:
    """One run a row."""
    rows = [
        {
            "covariance": run.covariance,
            "alpha": run.alpha,
            "paper": run.paper,
            "earlier": run.earlier,
            "start_risk": run.flow.relative_risk[0],
            "time": first_below(run.flow.times, run.flow.distance, NEAR),
            "distance": run.flow.distance[-1],
        }
        for run in runs
    ]
    columns = {
        "covariance": Column("Σ, by its norm", "name"),
        "alpha": Column("Scale α of the start"),
        "paper": Column("√2/(d^(1/4)‖Σ‖), the bound on α of [BB26, Thm 5.1]"),
        "earlier": Column("√2/(d^(1/4)‖Σ‖^(1/2)), the bound on α of [ZFB24]"),
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
            f"{len(frame)} random starts, with α up to {(frame['alpha'] / frame['paper']).max():.0f} times the bound."
        ),
        source="derived here",
        box="infinite-flow-converges",
        measured=float(np.max(frame["distance"])),
        expected=0.0,
        tolerance=REACHED,
        relation="≤",
        alternative=Alternative("one of the runs ends in the saddle A = 0, b = 0", 1.0),
    )


def _intervals_differ_claim(frame: pd.DataFrame) -> Claim:
    """Start risks where ‖Σ‖ < 1, inside the paper's interval and inside the earlier one."""
    small = frame[frame["paper"] > frame["earlier"]]

    def worst(bound: str) -> float:
        return float(small.loc[small["alpha"] <= small[bound], "start_risk"].max())

    return Claim(
        id="icl-infinite-two-conditions",
        statement=(
            "Where ‖Σ‖ < 1 the condition α < √2/(d^(1/4)‖Σ‖) of [BB26] allows starts that are worse than predicting "
            "0: the largest risk of such a start, divided by that of predicting 0."
        ),
        source="derived here",
        box="intervals-for-the-start",
        measured=worst("paper"),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the condition α < √2/(d^(1/4)‖Σ‖^(1/2)) of [ZFB24]", worst("earlier")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a covariance, a point a start, and the two bounds."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    point = {"marker": "o", "linestyle": "none", "color": "C0", "markersize": 6}
    worse = point | {"markerfacecolor": "none"}
    paper, earlier = {"color": "C1", "linewidth": 1.8}, {"color": ink(), "linewidth": 1.8, "linestyle": "--"}
    for panel, name in zip(panels, dict.fromkeys(table["covariance"]), strict=True):
        runs = table[table["covariance"] == name]
        for some, marks in ((runs[runs["start_risk"] < 1], point), (runs[runs["start_risk"] >= 1], worse)):
            panel.plot(some["alpha"], some["time"], **marks)
        panel.axvline(runs["paper"].max(), **paper)
        panel.axvline(runs["earlier"].max(), **earlier)
        panel.set(xscale="log", title=name.replace("‖Σ‖", r"$\|\Sigma\|$"), xlabel=r"scale $\alpha$")
        panel.set_ylim(0, 1.15 * runs["time"].max())
    panels[0].set_ylabel("time to the limit")
    handles = [Line2D([], [], **marks) for marks in (point, worse, paper, earlier)]
    labels = ["better than predicting 0", "worse", "bound of [BB26]", "bound of [ZFB24]"]
    figure.legend(handles, labels, loc="outside upper center", ncols=4, columnspacing=1.2, handletextpad=0.5)
    return figure
