r"""In a hard phase the prompts contain information that message passing does not find.

A weak signal in long prompts with hardly any noise; the output 0 has risk 1. Lines: ends of the state evolution, from
an uninformed start (solid) or close to the truth (dashed). Marks: message passing on the same prompts, with two
standard errors. Shaded: the lower end has the larger free entropy, so by a heuristic it is the Bayes-optimal one.

Alt: Two lines that coincide at few and at many prompts per dimension. In between the upper one stays high and then
drops at once to the lower one. Circles follow the upper line, squares the lower. The right part of the gap is shaded.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.message_passing.runs import mean
from chapters.message_passing.style import COLOUR, START_MARKERS, draw_ends
from chapters.message_passing.theory import DIFFERENT, ENDS_COLUMNS, Ends, Measured, ends_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, error_bars, label


def numbers(ends: Mapping[float, Ends], noisy: Mapping[float, Ends], runs: pd.DataFrame) -> Numbers:
    """Return both ends of the state evolution, runs from both starts, and the claims about the hard phase."""
    rows = [("evolution", *row) for row in ends_rows(ends)]
    for (start, alpha), some in runs.groupby(["start", "alpha"], sort=False):
        rows.append(("runs", start, alpha, *mean(some["risk"]), ends[alpha].two, ends[alpha].hard))
    columns = {"kind": Column("`evolution`: theory; `runs`: simulated", "name"), **ENDS_COLUMNS}
    claim = Claims("message-passing", source="measured here", box="hard-phase")
    gap = _largest_gap(ends)
    claim.at_least(
        "hard-phase",
        "With little noise there are sample ratios at which the end of larger free entropy has a lower risk "
        "than the end of the state evolution that message passing reaches: the largest difference of the two risks.",
        gap.value,
        DIFFERENT,
        because="risks that differ by more belong to different ends",
        rejects=("the noise were that of the settings above", _largest_gap(noisy).value),
        std_error=gap.std_error,
        source="[D26]",
    )
    claim.at_most(
        "stuck",
        "In the hard phase every run from an uninformed start stays nearer to the uninformed end: the largest "
        "fraction of the gap to the informed end that a run covers.",
        _farthest(ends, runs, "uninformed"),
        0.5,
        because="a run in the middle is as near to one end as to the other",
        rejects=("the start were close to the truth", _farthest(ends, runs, "informed")),
    )
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), claim)


def _largest_gap(ends: Mapping[float, Ends]) -> Measured:
    """Return the largest difference of the two risks where the phase is hard, 0 where it never is."""
    return max((both.gap for both in ends.values() if both.hard), default=Measured(0.0, 0.0))


def _farthest(ends: Mapping[float, Ends], runs: pd.DataFrame, start: str) -> float:
    """Return the largest fraction of the gap that a run in the hard phase covers, from the uninformed end on."""
    ways = [
        (ends[run.alpha].uninformed.value - run.risk) / ends[run.alpha].gap.value
        for run in runs[runs["start"] == start].itertuples()
        if ends[run.alpha].hard
    ]
    return max(ways, default=np.nan)


def draw(table: pd.DataFrame) -> Figure:
    """Draw two lines, their marks, and the hard phase shaded."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    lines = table[table["kind"] == "evolution"]
    upper, lower = draw_ends(axes, lines)
    hard = upper.index.intersection(lines.loc[lines["hard"], "alpha"])
    for start, mine in table[table["kind"] == "runs"].groupby("start", sort=False):
        look = {"color": COLOUR, "marker": START_MARKERS[start], "fillstyle": "none"}
        error_bars(axes, mine["alpha"], mine["risk"], mine["std_error"], **look)
    middle = hard[len(hard) // 2]
    label(axes, middle, (upper[middle] + lower[middle]) / 2, "hard", COLOUR, xytext=(0, 0), ha="center")
    label(axes, hard[0], upper[hard[0]], "message passing,\nuninformed start", COLOUR, xytext=(6, 46))
    last = table[(table["kind"] == "runs") & (table["start"] == "uninformed") & (table["alpha"] > hard.max())].iloc[0]
    label(axes, last["alpha"], last["risk"], "runs at finite $D$,\nsome not yet\nat the lower end", COLOUR)
    place = (hard[0], lower[hard[0]] + 0.3 * (upper[hard[0]] - lower[hard[0]]))
    label(axes, *place, "the lower end is\nBayes-optimal\nfrom here on", COLOUR, ha="right", xytext=(-8, 0))
    label(axes, middle, lower[middle], "start close to the truth", COLOUR, xytext=(-4, -20), ha="center")
    axes.set(xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0.95 * lower.min(), None))
    return figure
