r"""In a hard phase the prompts contain information that message passing does not find.

Horizontal axis: prompts per dimension, $\alpha=n/D$, for a weak signal in long prompts with hardly any noise. Vertical
axis: excess risk; the output 0 has risk 1. Lines: ends of the state evolution, from an uninformed start (upper, solid)
and from a start close to the truth (lower, dashed). Marks: message passing from both starts on the same prompts, means
with bars of two standard errors. Shaded: sample ratios at which the lower end has the larger free entropy, so that it
is the end of the Bayes-optimal estimator, while message passing from an uninformed start ends at the upper one.

Alt: Two lines that coincide at few and at many prompts per dimension. In between the upper one stays high and then
drops at once to the lower one. Circles follow the upper line, squares the lower. The right part of the gap is shaded.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.message_passing.runs import mean
from chapters.message_passing.style import COLOUR, START_MARKERS
from chapters.message_passing.theory import DIFFERENT, Ends, Measured
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, error_bars, label


def numbers(ends: Mapping[float, Ends], noisy: Mapping[float, Ends], runs: pd.DataFrame) -> Numbers:
    """Return both ends of the state evolution, runs from both starts, and the claims about the hard phase."""
    rows = [
        ("evolution", start, alpha, *getattr(both, start), both.two, both.hard)
        for alpha, both in ends.items()
        for start in START_MARKERS
    ]
    rows += [
        ("runs", start, alpha, *mean(mine["risk"]), ends[alpha].two, ends[alpha].hard)
        for (start, alpha), mine in runs.groupby(["start", "alpha"], sort=False)
    ]
    columns = {
        "kind": Column("`evolution`: theory; `runs`: simulated", "name"),
        "start": Column("`uninformed`: no information; `informed`: close to the truth", "name"),
        "alpha": Column("Sample ratio $α = n/D$"),
        "risk": Column("Excess risk; the output 0 has risk 1", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
        "two": Column("Whether the two starts of the evolution have different ends", "yes or no"),
        "hard": Column("Whether the phase is hard: two ends, and the informed one is Bayes-optimal", "yes or no"),
    }
    table = Table(pd.DataFrame(rows, columns=list(columns)), columns)
    return Numbers(table, (_found_claim(ends, noisy), _stuck_claim(ends, runs)))


def _found_claim(ends: Mapping[float, Ends], noisy: Mapping[float, Ends]) -> Claim:
    """Claim that the optimal risk is lower than that of message passing where the phase is hard."""

    def hidden(these):
        """Return the largest difference of the two risks where the phase is hard, 0 where it never is."""
        return max((both.gap for both in these.values() if both.hard), default=Measured(0.0, 0.0))

    gap = hidden(ends)
    return Claim(
        id="message-passing-hard-phase",
        statement=(
            "With little noise there are sample ratios at which the Bayes-optimal risk is lower than the end of the "
            "state evolution that message passing reaches: the largest difference of the two risks."
        ),
        source="[D26]",
        box="hard-phase",
        measured=gap.value,
        expected=DIFFERENT,
        tolerance=0.0,
        reason="risks that differ by more belong to different ends",
        std_error=gap.std_error,
        relation="≥",
        alternative=Alternative("the noise were that of the settings above", hidden(noisy).value),
    )


def _stuck_claim(ends: Mapping[float, Ends], runs: pd.DataFrame) -> Claim:
    """Claim that runs in the hard phase stay near the uninformed end."""

    def farthest(start):
        mine = runs[(runs["start"] == start) & runs["alpha"].map(lambda alpha: ends[alpha].hard)]
        ways = [
            (ends[run.alpha].uninformed.value - run.risk)
            / (ends[run.alpha].uninformed.value - ends[run.alpha].informed.value)
            for run in mine.itertuples()
        ]
        return max(ways, default=np.nan)

    return Claim(
        id="message-passing-stuck",
        statement=(
            "In the hard phase every run from an uninformed start stays nearer to the uninformed end: the largest "
            "fraction of the gap to the informed end that a run covers."
        ),
        source="measured here",
        box="hard-phase",
        measured=farthest("uninformed"),
        expected=0.5,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the start were close to the truth", farthest("informed")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw two lines, their marks, and the hard phase shaded."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    lines = table[table["kind"] == "evolution"]
    upper, lower = (lines[lines["start"] == start].set_index("alpha") for start in ("uninformed", "informed"))
    both, hard = upper.index[upper["two"]], upper.index[upper["hard"]]
    axes.fill_between(hard, lower["risk"][hard], upper["risk"][hard], color=COLOUR, alpha=0.15, linewidth=0)
    # broken where the upper branch ends, not drawn through the jump
    for piece in (upper[upper.index <= both[-1]], upper[upper.index > both[-1]]):
        axes.plot(piece.index, piece["risk"], color=COLOUR, linewidth=2)
    beyond = lower[lower.index >= both[0]]
    axes.plot(beyond.index, beyond["risk"], color=COLOUR, linewidth=2, linestyle="--")
    for start, mine in table[table["kind"] == "runs"].groupby("start", sort=False):
        look = {"color": COLOUR, "marker": START_MARKERS[start], "fillstyle": "none"}
        error_bars(axes, mine["alpha"], mine["risk"], mine["std_error"], **look)
    middle = hard[len(hard) // 2]
    centre = {"xytext": (0, 0), "ha": "center"}
    label(axes, middle, (upper["risk"][middle] + lower["risk"][middle]) / 2, "hard", COLOUR, **centre)
    label(axes, hard[0], upper["risk"][hard[0]], "uninformed start", COLOUR, xytext=(-10, 34))
    below = {"xytext": (-4, -20), "ha": "center"}
    label(axes, middle, lower["risk"][middle], "start close to the truth", COLOUR, **below)
    axes.set(
        xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0.95 * lower["risk"].min(), None)
    )
    return figure
