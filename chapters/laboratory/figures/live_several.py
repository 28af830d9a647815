r"""At strong signals softmax is best for one relevant token, a sigmoid for two; for fifty a linear head beats softmax.

The vertical axes show the least excess risk of three kinds of heads on prompts of $L=100$ tokens, of which $r$ are
relevant: softmax, sigmoid, and linear attention. Left: against the signal strength $\nu$, at the chosen $r$. Right:
against $r$, at the chosen $\nu$. Straight lines join computed values. Softmax is Bayes-optimal at $r=1$.

Alt: Two panels of three curves. Left, for two relevant tokens, the sigmoid falls fastest as the signal grows, softmax
levels off, and the linear curve is highest. Right, against the number of relevant tokens, the sigmoid and the linear
curve fall, and softmax jumps up from one to two and then falls slowly, above the linear curve in the end.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.laboratory.ranges import LARGEST_SEVERAL_SNR, SEVERAL_LENGTH
from chapters.laboratory.several_risks import RELEVANT
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at

NAMES = ("softmax", "linear", "sigmoid")
# The setting of the static picture.
SHOWN = {"relevant": 2, "snr": 15.0}


def numbers(risks: pd.DataFrame) -> Numbers:
    """Return the table, and the claim on the heads that are better than softmax."""
    columns = {
        "relevant": Column("Relevant tokens $r$"),
        "snr": Column("Signal strength $ν$"),
        **{name: Column(f"Least risk of a {name} head", absolute=1e-8) for name in NAMES},
    }
    with_signal = risks[risks["snr"] > 0].set_index("relevant")
    ratios = with_signal["softmax"] / with_signal["linear"]
    claim = Claims("live-several", source="measured here", box="which-weights-are-bayes")
    claim.at_least(
        "linear",
        f"With {RELEVANT[-1]} of {SEVERAL_LENGTH} tokens relevant the best linear head has a lower risk than the best "
        "softmax head at every signal strength above 0 of the figure (smallest ratio of the risk of softmax to it).",
        ratios[RELEVANT[-1]].min(),
        1,
        because="at 1 the risks are equal",
        rejects=("softmax is ahead, as with one relevant token", ratios[1].min()),
    )
    return Numbers(Table(risks, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risks against the signal strength and against the number of relevant tokens."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.2), sharey=True)
    by_snr = table[table["relevant"] == SHOWN["relevant"]]
    by_number = table[table["snr"] == SHOWN["snr"]]
    for index, name in enumerate(NAMES):
        panels[0].plot(by_snr["snr"], by_snr[name], color=f"C{index}", linewidth=2.2)
        panels[1].plot(by_number["relevant"], by_number[name], color=f"C{index}", linewidth=2.2, marker="o")
        label(panels[0], LARGEST_SEVERAL_SNR, by_snr[name].iloc[-1], name, f"C{index}", ha="right", xytext=(-4, 17))
    for panel, place in zip(panels, (SHOWN["snr"], SHOWN["relevant"]), strict=True):
        panel.axvline(place, color=ink(), linestyle="--", linewidth=1)
    panels[0].set(xlim=(0, LARGEST_SEVERAL_SNR), ylim=(0, 1.04), xlabel=r"signal strength, $\nu$", ylabel="excess risk")
    panels[1].set(xscale="log", xlabel="relevant tokens, $r$")
    ticks_at(panels[1].xaxis, [1, 2, 5, 10, 20, 50])
    panels[0].set_title(f"$r={SHOWN['relevant']}$ of {SEVERAL_LENGTH} tokens", loc="right")
    panels[1].set_title(rf"$\nu={SHOWN['snr']:g}$", loc="right")
    return figure
