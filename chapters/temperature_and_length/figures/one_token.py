r"""A factor $\ln L$ finds a token far enough above bounded scores in ever longer prompts, but not above normal scores.

Mean weight of one relevant token against the length of the prompt, under three scalings of all scores. Its score is a
fixed number of standard deviations above the mean of all other scores. Left: the other scores are uniform on an
interval, and the relevant token is above the upper end by a margin above $\ln L_0$, where $L_0$ is the length at which
the curves cross. Right: the other scores are normal, with the same standard deviation. Vertical line: the length at
which the largest of the other scores is about that of the relevant token. All curves are exact.

Alt: Two panels of a weight against the logarithm of the length. Left, two curves fall from near one to zero, one after
the other, and the third rises to one. Right, all three fall to zero, around the same vertical line.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.temperature_and_length.relevant_token import RelevantWeights
from chapters.temperature_and_length.style import COLOURS, LABELS, LOGARITHM, NORMAL, ROOT, UNIFORM
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at


def numbers(weights: Sequence[RelevantWeights], height: float) -> Numbers:
    """Return weights by distribution of the other scores and scaling, and the claims on a factor ln L."""
    groups = [
        {
            "law": curve.law,
            "scaling": curve.scaling,
            "log_length": curve.log_lengths,
            "weight": curve.weight,
            # the largest of L normal scores is about √(2 ln L) standard deviations
            "outgrown": 0.5 * height**2,
        }
        for curve in weights
    ]
    columns = {
        "law": Column("Distribution of the scores of all other tokens", "name"),
        "scaling": Column("Factor on all scores, up to a constant", "name"),
        "log_length": Column("$ln L$"),
        "weight": Column("Mean softmax weight of the relevant token", absolute=1e-9),
        "outgrown": Column("$ln L$ at which $√(2 ln L)$ standard deviations are the score of the relevant token"),
    }
    claim = Claims("temperature", source="derived here")
    last = {(curve.law, curve.scaling): curve.weight[-1] for curve in weights}
    longest = weights[0].log_lengths[-1]
    claim.at_least(
        "needle-bounded",
        "With scores times $ln L$ a relevant token far enough above bounded other scores gets nearly all the weight "
        f"(measured: its mean weight at $ln L = {longest:g}$).",
        last[UNIFORM, LOGARITHM],
        0.99,
        because="the limit is 1; with $√(ln L)$ it is 0",
        box="bounded-needle",
        rejects=("scores times $√(ln L)$", last[UNIFORM, ROOT]),
    )
    claim.at_most(
        "needle-normal",
        "Among normal scores a token of fixed score loses nearly all its weight on long prompts, even with scores "
        f"times $ln L$ (measured: its mean weight at $ln L = {longest:g}$).",
        last[NORMAL, LOGARITHM],
        0.01,
        because="the limit is 0; above bounded scores it is 1",
        box="normal-needle",
        rejects=("bounded other scores of the same standard deviation", last[UNIFORM, LOGARITHM]),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per distribution of the other scores, and one curve per scaling."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharey=True, sharex=True)
    titles = {UNIFORM: "other scores bounded", NORMAL: "other scores normal"}
    for panel, (law, title) in zip(panels, titles.items(), strict=True):
        rows = table[table["law"] == law]
        for scaling, colour in COLOURS.items():
            curve = rows[rows["scaling"] == scaling]
            panel.plot(curve["log_length"], curve["weight"], color=colour, linewidth=2, label=LABELS[scaling])
        panel.set(title=title, xscale="log", xlabel=r"$\ln\,L$", ylim=(-0.03, 1.03))
        ticks_at(panel.xaxis, [3, 10, 30, 100])
    panels[0].set_ylabel("mean weight of the relevant token")
    outgrown = table["outgrown"].iloc[0]
    panels[1].axvline(outgrown, color=ink(), linewidth=1, linestyle=":")
    label(panels[1], outgrown, 0.9, "another score\nis as large", ink(), xytext=(8, 0))
    panels[1].legend(loc="center right", fontsize=10, handlelength=1.2)
    return figure
