r"""If the relevant token may be missing, a sink helps on short prompts; long prompts need none.

A prompt has one relevant token with probability one half, and none otherwise. Solid: the Bayes risk, that of softmax
with a sink; dashed: the best softmax without one; dotted: the floor below which no normalised weights get. The axis
is the signal strength in units of $2\ln L$. From ten to a million tokens the dashed curve approaches the solid one: a
head without a sink averages over many other tokens, and the average of many values is nearly zero.

Details:
All curves are exact. The floor is $(1-\pi)/(1-\pi+\pi L)$ with the probability $\pi = 1/2$ that there is a
relevant token; it is reached as the signal strength tends to infinity.

Alt: For three prompt lengths a solid curve and a dashed curve above it. For ten tokens the dashed curve stays well
above zero, at a dotted line; for a million both fall together.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, label, sequence


def numbers(absence: pd.DataFrame) -> Numbers:
    """Return the curves; claims on the floor and on long prompts."""
    absence = absence.assign(ratio=absence["snr"] / (2.0 * np.log(10.0) * absence["decade"]))
    columns = {
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "snr": Column("Signal strength $ν$"),
        "with_sink": Column("Bayes risk, that of softmax with a sink"),
        "without": Column("Least risk of softmax without a sink", absolute=1e-8),
        "floor": Column("Least risk of normalised weights at any signal strength"),
        "ratio": Column("Signal strength over $2 ln L$"),
    }
    claim = Claims("several-tokens", source="derived here", box="floor-without-sink")
    ends = absence.groupby("decade").last()
    differences = ends["without"] - ends["with_sink"]
    claim.at_least(
        "floor",
        "Without a sink no risk is below the floor (least ratio of the risk to the floor).",
        (absence["without"] / absence["floor"]).min(),
        1,
        because="the weights of a prompt without a relevant token add up to one as well",
        rejects=("softmax reaches the Bayes risk", (absence["with_sink"] / absence["floor"]).min()),
    )
    claim.at_most(
        "long-prompts-need-no-sink",
        "On long prompts softmax without a sink is nearly Bayes-optimal (difference of the risks at $10^6$ tokens and "
        f"$ν = {ends['ratio'].iloc[0]:.3g} · 2 ln L$, over that at 10 tokens).",
        differences[6] / differences[1],
        0.25,
        because="a quarter: the difference tends to 0 as prompts get longer",
        rejects=("the sink is needed at every length", 1.0),
    )
    return Numbers(Table(absence, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw both risks and the floor for each length."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    groups = list(table.groupby("decade"))
    for (decade, rows), colour in zip(groups, sequence(len(groups)), strict=True):
        axes.plot(rows["ratio"], rows["with_sink"], color=colour, linewidth=2.0)
        axes.plot(rows["ratio"], rows["without"], color=colour, linewidth=2.0, linestyle="--")
        if decade == 1:
            axes.plot(rows["ratio"], rows["floor"], color=colour, linewidth=1.3, linestyle=":")
        place = rows.iloc[(rows["without"] - (0.28 if decade == 1 else 0.35)).abs().argmin()]
        label(axes, place["ratio"], place["without"], f"$L=10^{{{decade}}}$", colour, ha="left", xytext=(5, 3))
    axes.set(xlim=(0, None), ylim=(0, 1.03), xlabel=r"signal strength, $\nu/(2\,\ln L)$", ylabel="excess risk")
    return figure
