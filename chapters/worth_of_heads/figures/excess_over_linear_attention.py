r"""Two or more softmax heads come as close to linear attention as their values allow, and never reach it.

The limit of $L$ times the mean square error above the noise, divided by that of linear attention, minus 1, against the
largest value $|\mu_h|$ of the heads. Sets of heads have keys in fixed proportions, which shrink from left to right, and
the best values at these keys. The error of one head stays a fixed multiple of that of linear attention.

Relative keys are $(1,-1)$ for two heads, $(1,\frac12,-\frac13)$ for three and $(\pm1,\pm\frac12)$ for four.
They are chosen so that the lowest orders of the noise vanish; other keys are possible. All curves are exact up to
rounding. Linear attention would be at zero, which a logarithmic axis does not show.

Alt: Chart with two logarithmic axes. The curve of one head falls slightly and becomes horizontal. The curves of two,
three and four heads fall along straight lines, the more steeply the more heads there are.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from chapters.worth_of_heads.long_prompts import Approach, RandomHeads
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, few_decades, label, ticks_at

# Relative rounding of the closed form at values up to 1e4: their squares times the machine precision, with a reserve.
ROUNDING = 1e-6
# Heads of the curve whose slope is claimed.
CLAIMED = 3


def numbers(approaches: Sequence[Approach], drawn: RandomHeads) -> Numbers:
    """Return the excess by number of heads and largest value; claims on its slope and on random sets of heads."""
    groups = [{"heads": each.heads, "largest_value": each.largest_values, "excess": each.excess} for each in approaches]
    columns = {
        "heads": Column("Number of softmax heads"),
        "largest_value": Column("Largest value $|μ|$ of the heads"),
        "excess": Column("Limit of $L$ times the error above the noise, over that of linear attention, minus 1"),
    }
    claim = Claims("worth-of-heads", source="derived here")
    [claimed] = [each for each in approaches if each.heads == CLAIMED]
    slope, before = claimed.slope(), claimed.slope(before=1)
    claim.equal(
        "slope",
        f"The excess of {CLAIMED} heads over linear attention falls with a power of their largest value (measured: the "
        "logarithmic slope at the largest values).",
        slope,
        -2.0 * CLAIMED,
        within=abs(slope - before) / (2**0.5 - 1),
        because="the deviation falls at least in proportion to the keys, so that the last change of the slope, when "
        "the keys shrank by $√2$, is at least $√2 - 1$ times what remains",
        box="powers-of-the-approach",
        rejects=("heads beyond a pair do not change the power", -4.0),
    )
    independent = drawn.independent.min()
    claim.at_least(
        "bound",
        f"Of {drawn.ratios.size} random sets of two to four heads with their best values, none is below the limit of "
        "linear attention (measured: the smallest ratio).",
        drawn.ratios.min(),
        1.0,
        within=ROUNDING,
        because="the theorem, up to the rounding of the closed form where large values of both signs cancel",
        box="no-number-of-bounded-heads",
        comparisons=drawn.ratios.size,
        rejects=("the noises of different heads are independent", independent),
        requires=(
            independent < 1 - 2 * ROUNDING,
            "with independent noises none of these sets of heads would be below linear attention either: more "
            "`random_heads` decide",
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per number of heads."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    axes.set(xscale="log", yscale="log", xlabel=r"largest value $|\mu_h|$ of the heads")
    axes.set_ylabel("excess over linear attention")
    for heads, rows, colour in coloured_rows(table.sort_values("largest_value"), "heads"):
        axes.plot(rows["largest_value"], rows["excess"], color=colour, linewidth=2)
        name = f"{heads} heads" if heads > 1 else "1 head"
        label(axes, *rows[["largest_value", "excess"]].iloc[-1], name, colour, xytext=(8, 0))
    few_decades(axes)
    ticks_at(axes.xaxis, [2, 5, 10, 20])
    return figure
