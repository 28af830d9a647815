r"""One head per task beats one shared head, at the published size by less than in the limit of long prompts.

Covariates of total dimension $D$ are shared equally by $I$ tasks. Left: the error of one head for all tasks, divided by
that of one head for each task, exact and in the limit of long prompts. Right: the error of one head for each task,
divided by the least error of as many heads, is in the band.

All heads have their best keys and values for their length. Error bars are two standard errors of the ratio. The dotted
line is $e$. The upper edge of the band is the price of one head in the dimension of a task, which tends to $e$ in large
dimensions.

Alt: Two panels with logarithmic axes over the number of tasks. Left, two lines rise from left to right, the dashed one
above the solid one, and points are on the solid line. A horizontal line at one is named "equal errors". Right, a band
around three becomes narrower to the right, next to a dotted horizontal line.
"""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.worth_of_heads.separation import Separations, Simulated
from chapters.worth_of_heads.style import ALLOCATED, SOFTMAX
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, ticks_at


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
    """Draw both ratios against the number of tasks with the simulated points, and the band in its own panel."""
    figure, (main, side) = plt.subplots(1, 2, figsize=(WIDE, 4.6), width_ratios=(3, 2))
    tasks, end = table["tasks"], table.iloc[-1]
    for axes in (main, side):
        axes.set(xscale="log", yscale="log", xlabel="number of tasks $I$", ylim=(0.9, 1.7 * end["long_prompts"]))
        ticks_at(axes.xaxis, tasks)
        ticks_at(axes.yaxis, [1, 2, 3, 5, 10, 20])
        axes.axhline(1, color=ink(), linewidth=1)
    label(main, end["tasks"], 1, "equal errors", ink(), xytext=(0, 8), ha="right")
    main.plot(tasks, table["long_prompts"], color=SOFTMAX, linewidth=1.5, linestyle="--")
    main.plot(tasks, table["exact"], color=SOFTMAX, linewidth=2)
    error_bars(main, tasks, table["simulated"], table["simulated_std_error"], color=SOFTMAX, marker="o")
    times = [f"{end[column]:.1f} times with {end['tasks']:g} tasks" for column in ("long_prompts", "exact")]
    text = f"limit of long prompts:\n{times[0]}"
    label(main, end["tasks"], end["long_prompts"], text, SOFTMAX, xytext=(-30, 16), ha="right")
    text = f"published size,\nexact and simulated:\n{times[1]}"
    label(main, end["tasks"], end["exact"], text, SOFTMAX, xytext=(0, -74), ha="right")
    main.set(ylabel="error of one shared head\nover that of one per task", title="one shared head, one per task")
    side.fill_between(tasks, table["least_cost"], table["largest_cost"], color=ALLOCATED, alpha=0.25, linewidth=0)
    side.plot([tasks.min(), end["tasks"]], [math.e, math.e], color=ink(), linestyle=":", linewidth=1.3)
    label(side, end["tasks"], math.e, "$e$", ink(), xytext=(0, -10), ha="right")
    text = "between these bounds,\nlong prompts"
    label(side, tasks.min(), table["largest_cost"].iloc[0], text, ALLOCATED, xytext=(0, 22))
    side.set(ylabel="error of one head per task\nover the least of as many", title="one per task, the best heads")
    return figure
