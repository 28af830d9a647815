r"""One head per task beats one shared head, at the published size by less than in the limit of long prompts.

Covariates of total dimension $D$ are shared equally by $I$ tasks. Rising lines: the error of one head for all tasks,
divided by that of one head for each task. The solid line is exact at the length of the prompts, with simulated points;
the dashed line is the limit of long prompts. The band: the error of one head for each task, divided by the least error
of as many heads, is between its edges for long prompts.

All heads have their best keys and values for their length. Error bars are two standard errors of the ratio. The dotted
line is $e$. The upper edge of the band is the price of one head in the dimension of a task, which tends to $e$ in large
dimensions.

Alt: Chart with two logarithmic axes over the number of tasks. Two lines rise from left to right, the dashed one above
the solid one. Points are on the solid line. A horizontal line at one is named "equal errors". A band around three
becomes narrower to the right, next to a dotted horizontal line.
"""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.worth_of_heads.separation import Separations, Simulated
from chapters.worth_of_heads.style import ALLOCATED, SOFTMAX
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_line, legend_point, legend_with, ticks_at


def numbers(separations: Separations, simulated: Simulated) -> Numbers:
    """Return the ratios by number of tasks, with the claims that simulation agrees and that allocation has a cost."""
    ratios, errors = simulated.ratios()
    exact = separations.shared / separations.allocated
    long_prompts = separations.long_shared / separations.long_allocated
    group = {
        "tasks": separations.tasks,
        "exact": exact,
        "simulated": ratios,
        "simulated_std_error": errors,
        "long_prompts": long_prompts,
        "least_cost": separations.least_cost,
        "largest_cost": separations.largest_cost,
    }
    columns = {
        "tasks": Column("Number of tasks, I"),
        "exact": Column("Error of one head for all tasks over that of one head for each task, exact"),
        "simulated": Estimate("The same ratio on simulated prompts"),
        "long_prompts": Column("The same ratio in the limit of long prompts"),
        "least_cost": Column("Lower bound of the error of one head for each task over the least error of I heads"),
        "largest_cost": Column("Upper bound of the same ratio"),
    }
    claim = Claims("worth-of-heads", source="derived here", box="one-head-for-each-task")
    claim.agree(
        "separation",
        f"At {len(exact)} numbers of tasks, the ratio of the errors of one shared head and of one head for each task "
        "is the exact one",
        (ratios - exact) / errors,
        rejects=("the limit of long prompts holds at this length", (ratios - long_prompts) / errors),
    )
    for name, place in (("cost", np.argmax(separations.tasks)), ("cost-fewest", np.argmin(separations.tasks))):
        tasks = separations.tasks[place]
        claim.at_least(
            name,
            f"With {tasks:.0f} tasks and as many heads, one head for each task has more than the least error for long "
            "prompts (measured: the lower bound of the ratio).",
            separations.least_cost[place],
            math.e * (tasks - 1) / tasks,
            because="the price of one head is above $e$, and $I$ heads reach the error of $I - 1$ linear heads",
            rejects=("one head for each task is the best arrangement", 1.0),
        )
    return Numbers(Table.of([group], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw both ratios against the number of tasks, with the simulated points and the band."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(xscale="log", yscale="log", xlabel="number of tasks $I$", ylabel="ratio of two errors")
    tasks, end = table["tasks"], table.iloc[-1]
    axes.fill_between(tasks, table["least_cost"], table["largest_cost"], color=ALLOCATED, alpha=0.25, linewidth=0)
    axes.plot([tasks.min(), end["tasks"]], [math.e, math.e], color=ink(), linestyle=":", linewidth=1.3)
    axes.plot(tasks, table["exact"], color=SOFTMAX, linewidth=2)
    axes.plot(tasks, table["long_prompts"], color=SOFTMAX, linewidth=1.5, linestyle="--")
    error_bars(axes, tasks, table["simulated"], table["simulated_std_error"], color=SOFTMAX, marker="o")
    middle = math.sqrt(end["least_cost"] * end["largest_cost"])
    for height, text, colour in (
        (end["exact"], "one shared head\nover one per task,\npublished size", SOFTMAX),
        (end["long_prompts"], "one shared head\nover one per task,\nlong prompts", SOFTMAX),
        (middle, "one per task over\nthe best of as many,\nbetween these bounds,\nlong prompts", ALLOCATED),
    ):
        label(axes, end["tasks"], height, text, colour, xytext=(10, 0))
    axes.axhline(1, color=ink(), linewidth=1)
    label(axes, end["tasks"], 1, "equal errors", ink(), xytext=(24, 0))
    ticks_at(axes.xaxis, tasks)
    ticks_at(axes.yaxis, [1, 2, 3, 5, 10, 20])
    axes.set_ylim(0.9, 1.35 * end["long_prompts"])
    lines = {"exact": legend_line("-"), "simulated": legend_point(), "limit of long prompts": legend_line("--", 1.5)}
    legend_with(axes, {**lines, "$e$": legend_line(":", 1.3)}, loc="upper left")
    return figure
