r"""Trained from random starts, most runs of two heads end far closer to the Bayes risk than the best single head found.

Excess mean square error during stochastic gradient descent on infinite prompts, at the published mixture, noise, step
size and clipping; batch, initial spread and number of steps are not published and are chosen here. Each line is one
run. Dashed: the least excess of a single head, from the searches of {numref}`fig-heads-needed`. Some runs rest near the
dotted line.

Details:
After each step the weights are rounded to multiples of $2^{-24}$. Otherwise differences of rounding can grow to a few
per cent of the excess, and a processor that rounds differently has different curves.

Alt: Line chart on logarithmic axes. Orange lines of one head flatten on a dashed horizontal line. Most blue lines of
two heads end far below it, some of them after a long rest near a dotted line above it.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.mixtures.best_denoisers import NoiseLevel
from chapters.mixtures.style import PUBLISHED_NOISE_STD
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# A tenth of the best single head's excess is well below it.
TENTH = 0.1
# Steps after which 23 of 32 runs of two heads have less than a tenth of the excess of a single head (seed 91, which no
# run of the book uses), and the largest probability that none of the runs has.
ENOUGH_STEPS, ARRIVED, NONE_ARRIVED = 16000, 23 / 32, 1e-3


def numbers(training: pd.DataFrame, levels: list[NoiseLevel]) -> Numbers:
    """Return the excess along all runs, and the claim."""
    (published,) = (level for level in levels if level.noise_std == PUBLISHED_NOISE_STD)
    frame = training.assign(one_head=published.one_head, affine=published.affine)
    columns = {
        "heads": Column("Number of heads"),
        "run": Column("Number of the run"),
        "steps": Column("Number of steps of SGD", "steps"),
        "excess": Column("Excess mean square error over the Bayes risk"),
        "one_head": Column("Least excess of a single head that was found"),
        "affine": Column("Excess of linear attention with an intercept"),
    }
    steps, runs = training["steps"].max(), training["run"].nunique()
    best = training[training["steps"] == steps].groupby("heads")["excess"].min() / published.one_head
    too_short = f"two heads rest near the affine map for up to {ENOUGH_STEPS:,} steps, and this training has {steps:,}"
    none_arrived = (1 - ARRIVED) ** runs
    too_few = f"with {runs} runs the probability is {none_arrived:.1%} that none has arrived by then"
    claim = Claims("mixture-denoising", source="[GBB26, Figure 2]")
    claim.at_most(
        "training",
        f"After training, the best of {runs} runs of two heads has less than a tenth of the least excess of a single "
        "head (ratio).",
        best[2],
        TENTH,
        because="a tenth, as stated",
        requires=(
            steps >= ENOUGH_STEPS and none_arrived <= NONE_ARRIVED,
            too_short if steps < ENOUGH_STEPS else too_few,
        ),
        rejects=("two heads end where one head ends", best[1]),
    )
    return Numbers(Table(frame[list(columns)], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the excess of every run against the number of steps, with a dot at its end."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    last, single = table["steps"].max(), table["one_head"].iloc[0]
    for heads, colour in ((1, "C1"), (2, "C0")):
        runs = table[table["heads"] == heads]
        for _, run in runs.groupby("run"):
            axes.plot(run["steps"], run["excess"], color=colour, linewidth=1.2, alpha=0.8)
        ends = runs.groupby("run")["excess"].last()
        axes.plot([last] * len(ends), ends, "o", color=colour, markersize=5, clip_on=False, zorder=3)
    axes.axhline(single, color=ink(), linestyle="--", linewidth=1)
    axes.axhline(table["affine"].iloc[0], color=ink(), linestyle=":", linewidth=1.5)
    label(axes, last, single, "best single\nhead found", ink(), xytext=(8, 0))
    label(axes, last, table["affine"].iloc[0], "linear attention\nwith an intercept", ink(), xytext=(8, 4))
    label(axes, table["steps"].min(), 3.2, "runs of one head", "C1", xytext=(0, 0))
    text = f"runs of two heads:\n{(ends < single).sum()} of {len(ends)} end below\nthe best single head"
    label(axes, table["steps"].min(), 1e-3, text, "C0", xytext=(0, 0))
    axes.set(xscale="log", yscale="log", xlim=(None, last), ylim=(None, 5))
    axes.set(xlabel="steps of SGD", ylabel="excess over the Bayes risk")
    return figure
