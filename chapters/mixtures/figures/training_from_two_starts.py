r"""At the published mixture, stochastic gradient descent is near the Bayes risk much earlier if only the value is
random at the start.

The excess logistic risk over the Bayes risk during stochastic gradient descent with the published step size 0.01, at
the published mixture of two classes with opposite means in 20 dimensions. Each line is one run. Blue: all entries of
the head are standard normal at the start. Orange: those of the value only, and the others are zero. The batch of 32
tokens and the number of steps are not published and are chosen here. At the end the excess of all runs fluctuates.
The prompt is infinite; the excess is an average over 4000 tokens.

Alt: Line chart on logarithmic axes. Orange lines begin below a tenth and are below a hundredth after eighty steps. Blue
lines begin above one, are near one after eighty steps, and come down to the level of the others after thousands.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.mixtures.classifier_training import EARLY_STEPS
from chapters.mixtures.settings import OPPOSITE_DIMENSION
from chapters.mixtures.style import STARTS
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, few_decades

# "Much earlier" means less than a tenth of the excess.
TENTH = 0.1


def numbers(training: pd.DataFrame, overlaps: np.ndarray) -> Numbers:
    """Return the excess along all runs, and the claims on both starts."""
    columns = {
        "kind": Column("Entries that are random at the start", "name"),
        "run": Column("Number of the run"),
        "steps": Column("Number of steps of SGD", "steps"),
        "excess": Estimate("Excess logistic risk over the Bayes risk", "nat", std_error="std_error"),
    }
    claim = Claims("mixture-discrimination")
    early = training[training["steps"] == EARLY_STEPS].groupby("kind")["excess"]
    largest, smallest = early.max(), early.min()
    every, value = STARTS
    claim.at_most(
        "starts",
        f"After {EARLY_STEPS:,} steps, each run from a start with a random value only has less than a tenth of the "
        "excess of each run from random entries (largest over smallest).",
        largest[value] / smallest[every],
        TENTH,
        because="a tenth, as stated",
        source="[GBB26, Figures 4 and 5]",
        rejects=("all starts are alike, as those from random entries", largest[every] / smallest[every]),
    )
    std_error = overlaps.std(ddof=1) / np.sqrt(len(overlaps))
    claim.agree(
        "overlap",
        "At starts with a random value only, the mean square overlap of the value with the class mean is $1/d$, over "
        f"{len(overlaps):,} starts: the hypothesis of Theorem 3.6, overlap zero, does not hold",
        (overlaps.mean() - 1 / OPPOSITE_DIMENSION) / std_error,
        source="[GBB26, Prop. B.35]",
        rejects=("the overlap is zero, as Theorem 3.6 assumes", 1 / OPPOSITE_DIMENSION / std_error),
    )
    return Numbers(Table(training[[*columns, "std_error"]], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the excess of every run against the number of steps."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    for kind, colour in zip(STARTS, ("C0", "C1"), strict=True):
        for number, (_, run) in enumerate(table[table["kind"] == kind].groupby("run")):
            name = kind.removesuffix(" random") if number == 0 else None
            axes.plot(run["steps"], run["excess"], color=colour, linewidth=1.3, alpha=0.85, label=name)
    axes.set(xscale="log", yscale="log", xlabel="steps of SGD", ylabel="excess over the Bayes risk")
    few_decades(axes)
    axes.legend(loc="upper right", title="random at the start", alignment="left")
    return figure
