r"""The scale of the start, inside and outside the interval for $\alpha$.

Each point is a flow from a random $\Theta$: the time after which $(A,b)$ stays within a thousandth of its limit.
Filled: the start is better than predicting 0; hollow: worse. Vertical lines: up to where $\alpha$ may go by
[BB26] (solid) and by [ZFB24] (dashed). The right panel's $\Sigma$ is the left one's divided by 16. Every run
arrives; nothing happens at the lines.

Alt: Two panels of points, time against the logarithm of the start's scale. In both, times fall by a third from
small to large scales without any break. Starts turn from filled to hollow somewhat right of the dashed line;
the solid line is left of it in the first panel and right of it in the second.
"""

from dataclasses import dataclass

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.icl_infinite.block_flows import REACHED, Flow, bounds, clock, first_below, follow, toeplitz
from chapters.icl_infinite.marks import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.icl import LinearRegression, balanced_start

# "Near the limit", for the time that a start takes.
NEAR = 1e-3
# Divides a Σ of norm 2.6, or in higher dimension up to 3, and makes it small.
SHRINKING = 16.0


@dataclass(frozen=True)
class Run:
    """The flow from one random start of scale α, beside the two bounds on α."""

    covariance: str
    alpha: float
    paper: float
    earlier: float
    flow: Flow


def narrow_and_wide(d: int) -> dict[str, LinearRegression]:
    """One covariance at two scales, on either side of ‖Σ‖ = 1, where the two conditions on α change order."""
    return {"‖Σ‖ > 1": LinearRegression(toeplitz(d)), "‖Σ‖ < 1": LinearRegression(toeplitz(d) / SHRINKING)}


def runs_from_every_scale(
    tasks: dict[str, LinearRegression], scales: int, starts: int, points: int, *, key: PRNGKeyArray
) -> list[Run]:
    """Runs from random Θ, at scales inside, at and outside the two intervals."""
    rows, runs = [], []
    for name, task in tasks.items():
        paper, earlier = bounds(task.cov)
        for alpha in sorted({*(earlier * np.geomspace(1 / 30, 30, scales)), paper, earlier}):
            for i in range(starts):
                rows.append((name, alpha, paper, earlier))
                runs.append((task, balanced_start(jr.normal(jr.fold_in(key, i), task.cov.shape), alpha)))
    flows = follow([task for task, _ in runs], [start for _, start in runs], [clock(task, points) for task, _ in runs])
    return [Run(*row, flow) for row, flow in zip(rows, flows, strict=True)]


def numbers(runs: list[Run]) -> Numbers:
    """How long each start takes; that all of them arrive, and what the two intervals promise."""
    table = _table(runs)
    return Numbers(table, (_every_scale_claim(table.frame), _intervals_differ_claim(table.frame)))


def _table(runs: list[Run]) -> Table:
    """One run a row."""
    rows = [
        {
            "covariance": run.covariance,
            "alpha": run.alpha,
            "paper": run.paper,
            "earlier": run.earlier,
            "start_risk": run.flow.risk[0] / run.flow.risk_of_zero,
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
        measured=worst("paper"),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the condition α < √2/(d^(1/4)‖Σ‖^(1/2)) of [ZFB24]", worst("earlier")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a covariance, a point a start, and the two bounds."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    for panel, name in zip(panels, dict.fromkeys(table["covariance"]), strict=True):
        runs = table[table["covariance"] == name]
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
