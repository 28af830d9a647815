r"""If the relevant token may be missing, a sink helps on short prompts; long prompts need none.

A prompt has one relevant token with probability one half, and none otherwise. Softmax with a sink has the Bayes risk;
the floor is that of any normalised weights. The axis is the signal strength in units of $2\ln L$. On long prompts a
head without a sink averages over many other tokens, and this average is nearly zero.

Details:
All curves are exact. The floor is $(1-\pi)/(1-\pi+\pi L)$ with the probability $\pi = 1/2$ that there is a
relevant token; it is reached as the signal strength tends to infinity.

Alt: For three prompt lengths a solid curve and a dashed curve above it. For ten tokens the shaded gap between them is
wide, and the dashed curve stays above a dotted line; for a million both fall together.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, label, power_of_ten


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
    """Draw both risks for each length, with the floor and the names of the lines on the shortest prompts."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    groups = coloured_rows(table, "decade")
    for _, rows, colour in groups:
        axes.plot(rows["ratio"], rows["with_sink"], color=colour, linewidth=2.0)
        axes.plot(rows["ratio"], rows["without"], color=colour, linewidth=2.0, linestyle="--")
    _, short, lightest = groups[0]
    axes.plot(short["ratio"], short["floor"], color=lightest, linewidth=1.3, linestyle=":")
    axes.fill_between(short["ratio"], short["with_sink"], short["without"], color=lightest, alpha=0.2, linewidth=0)
    end = short.iloc[-1]
    names = {"without": "best without a sink", "floor": "floor without a sink", "with_sink": "with a sink: Bayes risk"}
    for column, name in names.items():
        label(axes, end["ratio"], end[column], name, lightest)
    right, left = {"xytext": (6, 5), "va": "bottom"}, {"xytext": (-12, 0), "ha": "right"}
    places = [
        (0.45, "{} tokens: gain from a sink", right),
        (0.14, "{}", right),
        (0.3, "{} tokens:\nalmost no gain", left),
    ]
    for (decade, rows, colour), (risk, text, look) in zip(groups, places, strict=True):
        length = f"${power_of_ten(10.0**decade)}$" if decade > 1 else f"{10**decade}"
        place = rows.iloc[(rows["without"] - risk).abs().argmin()]
        label(axes, place["ratio"], place["without"], text.format(length), colour, **look)
    axes.set(xlim=(0, end["ratio"]), ylim=(0, 1.03), xlabel=r"signal strength, $\nu/(2\,\ln L)$", ylabel="excess risk")
    axes.set_title("the relevant token is missing with probability 1/2")
    return figure
