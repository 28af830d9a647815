r"""Softmax has the lowest risk with one relevant token; with two a sigmoid has a lower one, except at weak signals.

Least excess risk of three heads in prompts of $L=100$ tokens of which $r$ are relevant; curves join exact values.
Points: heads trained by descent on drawn prompts at $\nu=15$. With one relevant token softmax is Bayes-optimal. With
more its curve flattens, and the sigmoid, which weighs each token by its own score, is far below it at strong signals.

Details:
Every head has its best slope and scale, and the sigmoid its best bias; between the computed strengths the
curves are straight. Risks are divided by the variance of the sum of the relevant values, so that the output 0 has
the risk 1. Trained heads are measured on fresh
prompts; their standard errors are smaller than the points.

Alt: Three panels, for one, two and five relevant tokens. In the first the softmax curve falls below the sigmoid
curve. In the others the sigmoid falls far below softmax, whose curve levels off. The linear curve is highest at
first. Points lie on the curves.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.several_relevant_tokens.parameters import SHOWN_SNR
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, label

# The heads in the order of their colours.
NAMES = ("softmax", "linear", "sigmoid")


def numbers(risks: pd.DataFrame, trained: pd.DataFrame) -> Numbers:
    """Return least and measured risks of heads; claims on the order of heads, and on trained ones."""
    columns = {
        "kind": Column("`least`: the least risk of such a head; `trained`: a trained head, on fresh prompts", "name"),
        "relevant": Column("Relevant tokens $r$"),
        "snr": Column("Signal strength $ν$"),
        "head": Column("Activation of the head", "name"),
        "risk": Column("Excess risk, divided by the variance of the label", std_error="std_error", absolute=1e-8),
        "std_error": Column("Standard error of risk", moves_with="risk"),
    }
    least = risks.melt(["relevant", "snr"], var_name="head", value_name="risk").assign(kind="least")
    points = trained.drop(columns="best").assign(kind="trained", snr=SHOWN_SNR)
    table = Table.of([least, points], columns)
    claim = Claims("several-tokens", source="derived here", box="which-weights-are-bayes")
    shown = risks[risks["snr"] == SHOWN_SNR].set_index("relevant")
    two = shown.index[1]
    claim.at_most(
        "one",
        "With one relevant token the best softmax head has a lower risk than the best sigmoid "
        f"(risk of softmax at $L = 100$, $ν = {SHOWN_SNR:g}$).",
        shown.loc[1, "softmax"],
        shown.loc[1, "sigmoid"],
        because="the least risk of a sigmoid; softmax is Bayes-optimal",
        rejects=("softmax is as far from the posterior as with two tokens", shown.loc[two, "softmax"]),
    )
    claim.at_least(
        "two",
        f"With $r = {two}$ relevant tokens of $L = 100$ and $ν = {SHOWN_SNR:g}$ the best softmax head has a higher "
        "risk than the best sigmoid (risk of softmax).",
        shown.loc[two, "softmax"],
        shown.loc[two, "sigmoid"],
        because="the least risk of a sigmoid head",
        rejects=("softmax finds two tokens as well as one", shown.loc[1, "softmax"]),
    )
    several = risks[(risks["relevant"] > 1) & (risks["snr"] > 0)]
    claim.at_most(
        "small-gain",
        "With more than one relevant token softmax is hardly ahead of the sigmoid at any computed signal strength "
        "(largest lead at $L = 100$).",
        (several["sigmoid"] - several["softmax"]).max(),
        0.002,
        because="the largest lead in an independent computation, at r from 2 to 10, rounded up",
        source="measured here",
        rejects=("the lead that softmax has with one token", (risks["sigmoid"] - risks["softmax"]).max()),
    )
    # the rows alternate between both heads
    other = trained["best"].to_numpy().reshape(-1, 2)[:, ::-1].ravel()
    claim.agree(
        "trained",
        f"Heads trained by descent reach the least risks of the theory ($L = 100$, $ν = {SHOWN_SNR:g}$)",
        (trained["risk"] - trained["best"]) / trained["std_error"],
        source="measured here",
        rejects=("the least risk of the other head", (trained["risk"] - other) / trained["std_error"]),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per number of relevant tokens."""
    found = sorted(table["relevant"].unique())
    figure, panels = plt.subplots(1, len(found), figsize=(WIDE, 4.2), sharey=True)
    for panel, relevant in zip(panels, found, strict=True):
        for index, (name, below) in enumerate(zip(NAMES, (20, 31, 29), strict=True)):
            rows = table[(table["relevant"] == relevant) & (table["head"] == name)]
            curve, points = (rows[rows["kind"] == kind] for kind in ("least", "trained"))
            panel.plot(curve["snr"], curve["risk"], color=f"C{index}", linewidth=2.2)
            panel.plot(points["snr"], points["risk"], "o", color=f"C{index}", markersize=7, markeredgecolor="white")
            if panel is panels[1]:
                end = curve.iloc[-1]
                label(panel, end["snr"], end["risk"], name, f"C{index}", ha="right", xytext=(-4, below))
        panel.set(xlim=(0, None), ylim=(0, 1.03), xlabel=r"signal strength, $\nu$")
        panel.set_title(f"$r={relevant}$ of 100 tokens", fontsize=12)
    panels[0].set_ylabel("excess risk")
    return figure
