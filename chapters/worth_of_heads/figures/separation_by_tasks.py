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
from companion import Alternative, Claim, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_line, legend_point, legend_with


def numbers(separations: Separations, simulated: Simulated) -> Numbers:
    """Return the ratios by number of tasks, with the claims that simulation agrees and that allocation has a cost."""
    ratios, errors = simulated.ratios()
    frame = pd.DataFrame(
        {
            "tasks": separations.tasks,
            "exact": separations.shared / separations.allocated,
            "simulated": ratios,
            "simulated_std_error": errors,
            "long_prompts": separations.long_shared / separations.long_allocated,
            "least_cost": separations.least_cost,
            "largest_cost": separations.largest_cost,
        }
    )
    columns = {
        "tasks": Column("Number of tasks, I"),
        "exact": Column("Error of one head for all tasks over that of one head for each task, exact"),
        "simulated": Estimate("The same ratio on simulated prompts"),
        "long_prompts": Column("The same ratio in the limit of long prompts"),
        "least_cost": Column("Lower bound of the error of one head for each task over the least error of I heads"),
        "largest_cost": Column("Upper bound of the same ratio"),
    }
    return Numbers(Table(frame, columns), (_separation_claim(frame), *_cost_claims(frame)))


def _separation_claim(frame: pd.DataFrame) -> Claim:
    """Claim that the exact ratio is that of simulated prompts."""

    def worst(column: str) -> float:
        return float(np.max(np.abs(frame["simulated"] - frame[column]) / frame["simulated_std_error"]))

    return Claim.consistent(
        "worth-of-heads-separation",
        f"At {len(frame)} numbers of tasks, the ratio of the errors of one shared head and of one head for each task "
        "is the exact one (measured: the largest deviation in standard errors).",
        worst("exact"),
        comparisons=len(frame),
        source="derived here",
        box="one-head-for-each-task",
        alternative=Alternative("the limit of long prompts holds at this length", worst("long_prompts")),
    )


def _cost_claims(frame: pd.DataFrame) -> list[Claim]:
    """Claim that one head for each task is not the best arrangement, for the most and for the fewest tasks."""
    ends = {"": frame.loc[frame["tasks"].idxmax()], "-fewest": frame.loc[frame["tasks"].idxmin()]}
    return [
        Claim.at_least(
            f"worth-of-heads-cost{name}",
            f"With {row['tasks']:.0f} tasks and as many heads, one head for each task has more than the least error "
            "for long prompts (measured: the lower bound of the ratio).",
            row["least_cost"],
            math.e * (row["tasks"] - 1) / row["tasks"],
            because="the price of one head is above $e$, and $I$ heads reach the error of $I - 1$ linear heads",
            source="derived here",
            box="one-head-for-each-task",
            alternative=Alternative("one head for each task is the best arrangement", 1.0),
        )
        for name, row in ends.items()
    ]


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
    label(
        axes, end["tasks"], end["exact"], "one shared head\nover one per task,\npublished size", SOFTMAX, xytext=(10, 0)
    )
    label(
        axes,
        end["tasks"],
        end["long_prompts"],
        "one shared head\nover one per task,\nlong prompts",
        SOFTMAX,
        xytext=(10, 0),
    )
    middle = math.sqrt(end["least_cost"] * end["largest_cost"])
    label(
        axes,
        end["tasks"],
        middle,
        "one per task over\nthe best of as many,\nbetween these bounds,\nlong prompts",
        ALLOCATED,
        xytext=(10, 0),
    )
    axes.axhline(1, color=ink(), linewidth=1)
    label(axes, end["tasks"], 1, "equal errors", ink(), xytext=(24, 0))
    axes.set_xticks(tasks, labels=[f"{count:.0f}" for count in tasks])
    values = [1, 2, 3, 5, 10, 20]
    axes.set_yticks(values, labels=[str(value) for value in values])
    axes.minorticks_off()
    axes.set_ylim(0.9, 1.35 * end["long_prompts"])
    lines = {"exact": legend_line("-"), "simulated": legend_point(), "limit of long prompts": legend_line("--", 1.5)}
    legend_with(axes, {**lines, "$e$": legend_line(":", 1.3)}, loc="upper left")
    return figure
