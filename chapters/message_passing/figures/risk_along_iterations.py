r"""Message passing reaches the optimal risk within a dozen iterations, from an uninformed or an informed start.

Horizontal axis: iterations. Vertical axis: excess risk of the current estimates; the output 0 has risk 1. Lines: the
state evolution for $D\to\infty$, from an uninformed start and from a start close to the truth. Marks: means over sets
of prompts, each with one run from both starts; bars are two standard errors. Dotted: the common end of both lines,
which is the Bayes-optimal risk at this number of prompts.

Alt: Two lines with marks on them against iterations. One falls from above, the other rises from below; from about ten
iterations on both are on the same dotted level.
"""

from collections.abc import Iterable

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.message_passing.runs import Shown, mean
from chapters.message_passing.style import COLOUR, START_MARKERS
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, error_bars, label
from lib.statistics import comparison_quantile

# Largest difference between two runs at one end, in standard deviations between sets of prompts.
ONE_END = 0.1
# Iterations of a window, and the largest move of a run at rest: a fiftieth of the difference after ten more iterations.
WINDOW, AT_REST = 5, 2e-4


def numbers(shown: Shown, evolution) -> Numbers:
    """Return the state evolution and the mean risk of the runs per iteration, with their claims."""
    rows = []
    for start, predicted in evolution.items():
        risks = shown.by_start[start].risk
        rows += [(start, i + 1, at, *mean(risks[:, i]), predicted[-1]) for i, at in enumerate(predicted)]
    columns = {
        "start": Column("`uninformed`: no information; `informed`: close to the truth", "name"),
        "iteration": Column("Iterations done", "iterations"),
        "evolution": Column("Excess risk by the state evolution"),
        "risk": Column("Mean excess risk of the runs", std_error="std_error"),
        "std_error": Column("Its standard error over sets of prompts", moves_with="risk"),
        "end": Column("Excess risk by the state evolution after the last iteration"),
    }
    frame = pd.DataFrame(rows, columns=list(columns))
    claim = Claims("message-passing", source="derived here")
    largest, runs = frame["std_error"].max(), len(shown.by_start["informed"].risk)
    textbook = [np.abs(each.risk.mean(axis=0) - evolution[start]).max() for start, each in shown.textbook.items()]
    claim.at_most(
        "evolution",
        "Message passing from both starts has the risk of the state evolution at every iteration: the largest "
        f"of {len(frame)} deviations of mean risks.",
        (frame["risk"] - frame["evolution"]).abs().max(),
        0,
        within=comparison_quantile(len(frame), samples=runs) * largest,
        because=f"99.9 % quantile of the largest of {len(frame)} deviations with Student's distribution, times the "
        "largest standard error",
        rejects=("the step were that of the textbook, without the curvature along the spike", max(textbook)),
        std_error=largest,
        box="passes-of-the-evolution",
    )
    claim_one_end(claim, shown)
    claim.agree(
        "knows",
        "The variances of the algorithm predict its overlaps with the truth: actual and predicted overlaps with $k*$ "
        "and $v*$ agree",
        _overlap_deviations(shown, -1),
        within=comparison_quantile(2, samples=runs),
        because="99.9 % quantile of the larger of two deviations with Student's distribution",
        rejects=("the overlaps were those after one iteration", _overlap_deviations(shown, 0)),
        source="[D26]",
        box="posterior-by-messages",
    )
    return Numbers(Table(frame, columns), claim)


def claim_one_end(claim: Claims, shown: Shown) -> None:
    """Claim that both starts have the same risk at the end, if all runs are at rest by then."""
    first, second = (shown.by_start[start].risk for start in ("uninformed", "informed"))
    apart = np.abs(first - second).max(axis=0) / np.std(first, axis=0, ddof=1)
    left = ahead(runs.risk for runs in shown.by_start.values())
    claim.at_most(
        "one-end",
        f"On the same prompts both starts have the same risk after {len(apart)} iterations: the largest "
        "difference, divided by the standard deviation between sets of prompts.",
        apart[-1],
        ONE_END,
        because="the largest difference between two runs at one end",
        rejects=("the runs stopped after two iterations", apart[1]),
        source="measured here",
        requires=(
            left <= ONE_END / 2,  # two runs that approach each other this far can both be at rest within the bound
            f"after {len(apart)} iterations not all runs are at rest: a risk still moves by up to {left:.2g} standard "
            "deviations between sets of prompts. More `iterations` or another `alpha` help",
        ),
    )


def _overlap_deviations(shown: Shown, iteration: int) -> list[float]:
    """Return the mean differences of the overlaps from those that the last variances predict, in standard errors."""
    run = shown.by_start["uninformed"]
    actual = (run.overlaps.m_k[:, iteration], run.overlaps.m_v[:, iteration])
    means = [mean(each - predicted) for each, predicted in zip(actual, run.estimated[:, -1].T, strict=True)]
    return [each.value / each.std_error for each in means]


def draw(table: pd.DataFrame) -> Figure:
    """Draw two lines and their marks."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    words = {"uninformed": "uninformed start", "informed": "start close to the truth"}
    for start, mine in table.groupby("start", sort=False):
        axes.plot(mine["iteration"], mine["evolution"], color=COLOUR, linewidth=2)
        look = {"color": COLOUR, "marker": START_MARKERS[start], "fillstyle": "none"}
        error_bars(axes, mine["iteration"], mine["risk"], mine["std_error"], **look)
        second, above = mine.iloc[1], mine["evolution"].iloc[0] > mine["end"].iloc[0]
        label(axes, second["iteration"], second["evolution"], words[start], COLOUR, xytext=(14, 0 if above else -22))
    axes.axhline(table["end"].iloc[0], color=COLOUR, linestyle=":", linewidth=1.5)
    label(axes, table["iteration"].max(), table["end"].iloc[0], "Bayes-optimal", COLOUR, xytext=(0, 12), ha="right")
    axes.set(xlabel="iterations", ylabel="excess risk", ylim=(0.8 * table["evolution"].min(), None))
    return figure


def ahead(risks: Iterable[np.ndarray]) -> float:
    """Return how far the risk of a run will still move, at most, in standard deviations between sets of prompts.

    Moves may oscillate. So the largest moves of the last `WINDOW` iterations and of as many before give the factor by
    which moves shrink from one window to the next; the sums of the windows ahead are a geometric series.

    Args:
      risks: the risks of the runs from each start, of shape (sets of prompts, at least 2 `WINDOW` + 1 iterations).

    Returns:
      The largest sum of the series, 0 for runs at rest, infinite if the moves of a run do not shrink.
    """
    farthest = 0.0
    for of_start in risks:
        moves = np.abs(np.diff(of_start[:, -2 * WINDOW - 1 :], axis=1)) / np.std(of_start[:, -1], ddof=1)
        before, last = moves[:, :WINDOW].max(axis=1), moves[:, WINDOW:].max(axis=1)
        moving = last > AT_REST
        if np.any(moving & (last >= before)):
            return np.inf
        series = WINDOW * last[moving] ** 2 / (before - last)[moving]
        farthest = max(farthest, *series, 0.0)
    return float(farthest)
