r"""Training allocates one task to each head, and later leaves this arrangement for a better one.

Three heads learn three tasks. Points: mean loss of stochastic gradient descent in windows of steps, with two standard
errors. Solid: the gradient flow of the error of long prompts, to first order in $1/L$, from the same start, in which
head $h$ has twice the value of the other heads for task $h$. Dashed: with factors of each value that differ.

Alt: Chart of the loss, on a logarithmic axis, against training time. The loss is flat, falls fast and is flat again
near a horizontal line. The solid curve stays there. The points and a dashed curve later fall below the line to a
second, lower level.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.worth_of_heads.allocation import LATE, Flow, Training
from chapters.worth_of_heads.style import ALLOCATED, SOFTMAX
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, ticks_at
from lib.statistics import comparison_quantile, standard_error

# Relative tolerance of the time of the emergence.
TIME = 0.25


def numbers(flow: Flow, unbalanced: Flow, allocated: float, training: Training) -> Numbers:
    """Return the losses by time, with claims on the time of the emergence and on the end of the training.

    Args:
      flow: the flow from the start of the training.
      unbalanced: the flow from the start with unequal factors.
      allocated: the exact least error of one head for each task, per task.
      training: the losses of stochastic gradient descent.
    """
    windows, times = training.windows(), training.window_times()
    group = {
        "time": times,
        "loss": windows.mean(axis=1),
        "loss_std_error": standard_error(windows, axis=1),
        "flow": np.interp(times, flow.times, flow.error),
        "unbalanced": np.interp(times, unbalanced.times, unbalanced.error),
        "allocated": allocated,
    }
    columns = {
        "time": Column("Training time: steps times their size"),
        "loss": Estimate("Mean loss in a window of steps"),
        "flow": Column("Error along the gradient flow from the same start", absolute=1e-4),
        "unbalanced": Column("Error along the gradient flow from a start with unequal factors", absolute=1e-4),
        "allocated": Column("Exact least error of one head for each task"),
    }
    claim = Claims("worth-of-heads", source="measured here")
    level = (flow.error[0] + flow.error[-1]) / 2
    time = flow.times[np.argmax(flow.error < level)]
    claim.equal(
        "emergence",
        "The loss of the training falls to the middle of its start and the level of allocated heads at the time of the "
        "flow (measured: the ratio of the two times).",
        training.time_below(level) / time,
        1.0,
        within=TIME,
        because="a quarter: the flow has neither the noise of the steps nor the second order in $1/L$",
        rejects=("the loss keeps the speed of its start", (level - flow.error[0]) / flow.initial_speed / time),
    )
    end, error = training.last()
    claim.at_most(
        "end",
        "The training ends below the least error of one head for each task (measured: mean loss of the last steps).",
        end,
        allocated - comparison_quantile(1) * error,
        because="the exact least error of one head for each task, less the 99.9 % quantile of the noise of the mean",
        std_error=error,
        rejects=("the training stays at one head for each task", allocated),
        requires=(training.losses.size >= LATE, f"heads leave this arrangement late, and it needs {LATE:,} steps"),
    )
    return Numbers(Table.of([group], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw losses and flows against time, with the level of one head for each task."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(yscale="log", xlabel="training time (steps times step size)", ylabel="mean square error per task")
    axes.axhline(table["allocated"].iloc[0], color=ALLOCATED, linewidth=1.5)
    axes.plot(table["time"], table["flow"], color=ink(), linewidth=2)
    axes.plot(table["time"], table["unbalanced"], color=ink(), linewidth=1.5, linestyle="--")
    error_bars(axes, table["time"], table["loss"], table["loss_std_error"], color=SOFTMAX, marker="o", markersize=4)
    axes.set(xlim=(0, table["time"].max() * 1.02), ylim=(0.75 * table["unbalanced"].min(), None))
    label(axes, axes.get_xlim()[1], table["allocated"].iloc[0], "one head\nper task,\nexact", ALLOCATED)
    fall = table["time"][table["flow"].diff().idxmin()]
    start, rest = table["flow"].iloc[0], table["flow"].iloc[-1]
    label(axes, fall, start, "warm-up", ink(), xytext=(10, 0))
    label(axes, fall, (start * rest) ** 0.5, "emergence", ink(), xytext=(10, 0))
    label(axes, 2 * fall, rest, "convergence", ink(), xytext=(0, 16), ha="center")
    ticks_at(axes.yaxis, [0.1, 0.2, 0.5, 1.0, 2.0])
    end = table["time"].max()
    label(axes, end, rest, "gradient flow", ink(), xytext=(0, 4), ha="right", va="bottom")
    name = "flow, factors 1 % apart at the start"
    label(axes, end, table["unbalanced"].iloc[-1], name, ink(), xytext=(0, -5), ha="right", va="top")
    label(axes, 2 * fall, table["allocated"].iloc[0], "training", SOFTMAX, xytext=(0, -20))
    later = table[table["time"] > 0.75 * end].iloc[0]
    arrow = {"arrowstyle": "->", "color": SOFTMAX}
    text = "training leaves for\na better arrangement"
    label(axes, later["time"], later["loss"], text, SOFTMAX, xytext=(0, 110), ha="center", arrowprops=arrow)
    return figure
