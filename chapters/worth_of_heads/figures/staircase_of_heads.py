r"""On several disjoint tasks, each softmax head after the second lowers the error like a further linear head.

There are $I$ tasks of dimension $\delta$ and $D=I\delta$ covariates, without label noise; task coordinates have
variance 1. The vertical axis is $L$ times the total mean square error. For $H=1$ and $H=I+1$ the step is proved to be
the least error; for the numbers between, searches over keys from random starts found it.

Alt: Step chart over the number of heads. Steps fall steeply, then slowly. A point is on every step. A dashed line of
the same shape is below, one head to the left, and meets the steps at the last number of heads. A cross is far above
the step at the number of tasks.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.worth_of_heads.disjoint_tasks import Staircase
from chapters.worth_of_heads.style import ALLOCATED, LINEAR, SOFTMAX
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, ticks_at

# The searches stop where keys are small and not zero, and where a gradient is small.
SEARCH = 1e-3


def numbers(staircase: Staircase) -> Numbers:
    """Return the errors by number of heads, and the claim that searches and formula agree."""
    columns = {
        "heads": Column("Number of heads, $H$"),
        "found": Column("Least error times $L$ that the searches found", absolute=1e-4),
        "reached": Column("Error times $L$ that softmax heads reach, by the formula"),
        "bound": Column("Proved lower bound of the error times $L$"),
        "allocated": Column("Error times $L$ of one softmax head for each task"),
        "tasks": Column("Number of tasks, I"),
    }
    frame = pd.DataFrame({name: getattr(staircase, name) for name in columns})
    from_reached, from_bound = (np.max(np.abs(frame["found"] / frame[name] - 1)) for name in ("reached", "bound"))
    claim = Claims("worth-of-heads", source="measured here", box="staircase")
    claim.at_most(
        "staircase",
        f"For 1 to {len(frame)} heads, the least error found by searches is the error that the formula gives "
        "(measured: the largest relative difference).",
        from_reached,
        SEARCH,
        because="the searches end where the gradient is small, at keys that are small and not zero",
        comparisons=len(frame),
        rejects=("$H$ softmax heads reach the error of $H$ linear heads", from_bound),
    )
    return Numbers(Table(frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the steps with the found errors, the lower bound, and one head for each task."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    axes.set(yscale="log", xlabel="number of heads $H$", ylabel="total error times $L$, long prompts")
    look = {"where": "mid", "linewidth": 2}
    axes.step(table["heads"], table["reached"], color=SOFTMAX, label="softmax heads reach this (proved)", **look)
    bound = {"color": LINEAR, "linestyle": "--", "label": "lower bound: $H$ linear heads (proved)"}
    axes.step(table["heads"], table["bound"], **bound, **look)
    axes.plot(table["heads"], table["found"], "o", color=SOFTMAX, label="least error found (numerical)")
    tasks, allocated = table["tasks"].iloc[0], table["allocated"].iloc[0]
    axes.plot(tasks, allocated, marker="X", markersize=9, linestyle="", color=ALLOCATED)
    label(axes, tasks, allocated, "one head per task", ALLOCATED, xytext=(0, 12), ha="center")
    fourth = table[table["heads"] == tasks].iloc[0]
    arrow = {"arrowstyle": "<-", "color": ink()}
    axes.annotate("", (tasks - 0.95, fourth["reached"]), (tasks - 0.05, fourth["reached"]), arrowprops=arrow)
    label(axes, tasks - 1.5, fourth["reached"], "the same error,\none head further", ink(), xytext=(-6, 0), ha="right")
    ticks_at(axes.xaxis, table["heads"])
    ticks_at(axes.yaxis, [30, 50, 100, 200, 500])
    axes.set_ylim(0.75 * table["bound"].min(), 1.3 * table["reached"].max())
    axes.legend(loc="upper right")
    return figure
