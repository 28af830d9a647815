r"""The Bayes risk of several relevant tokens is between that of separate blocks and that of a sigmoid.

Lower edge of a band: the exact risk of $r$ softmax heads, each on its own block of $L/r$ tokens with one relevant
token; no predictor without the blocks is better. Upper edge: the best sigmoid head, exact too. Points: the Bayes
risk, simulated. With ten relevant tokens and a weak signal the sigmoid is almost Bayes-optimal.

Details:
$L = 100$. A simulated point is an average over random prompts in which the score of one relevant token is
averaged exactly; standard errors are smaller than the points. Where $r$ does not divide $L$, blocks have $\lfloor
L/r\rfloor$ or $\lceil L/r\rceil$ tokens.

Alt: For each number of relevant tokens a band that falls with the signal strength, with points inside. For two
relevant tokens the points are in the middle of the band, for ten they are near its upper edge.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.several_relevant_tokens.risks import Areas
from chapters.style import coloured_rows
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, ink, label
from lib.statistics import comparison_quantile


def numbers(bayes: pd.DataFrame, areas: Areas) -> Numbers:
    """Return bounds and simulated risks; claims on the bounds and on areas under risks."""
    columns = {
        "relevant": Column("Relevant tokens $r$"),
        "snr": Column("Signal strength $ν$"),
        "lower": Column("Risk of $r$ softmax heads on separate blocks"),
        "upper": Column("Risk of the best sigmoid head"),
        "risk": Estimate("Simulated Bayes risk"),
    }
    claim = Claims("several-tokens", source="derived here", box="blocks-and-sigmoid")
    above_lower, above_upper = ((bayes["risk"] - bayes[edge]) / bayes["risk_std_error"] for edge in ("lower", "upper"))
    claim.at_most(
        "sandwich",
        "The simulated Bayes risk is between both bounds (largest excess in standard errors, negative if inside).",
        np.maximum(-above_lower, above_upper).max(),
        0,
        within=comparison_quantile(2 * len(bayes)),
        because=f"99.9 % quantile of the largest of {2 * len(bayes)} standard normal deviations",
        comparisons=2 * len(bayes),
        rejects=("the Bayes risk is that of separate blocks, the lower bound", above_lower.max()),
    )
    claim.equal(
        "area-one",
        "Knowing that exactly one token is relevant is worth nearly two units of signal strength (area between the "
        "element-wise and the Bayes risk at $L = 100$).",
        areas.known,
        areas.expected,
        within=1e-6,
        because="error of the quadrature over ν, which 40 nodes change by less",
        box="areas",
        rejects=("the limit of long prompts, two", 2.0),
    )
    claim.equal(
        "area-independent",
        "The area under the risk of independent relevance is twice the entropy per relevant token ($q = 1/10$).",
        areas.independent,
        areas.entropy,
        within=1e-6,
        because="error of the quadrature over ν, which 40 nodes change by less",
        box="areas",
        rejects=("the entropy of exactly ten tokens, by which the number is known", areas.independent - areas.many),
    )
    return Numbers(Table(bayes, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw a band and points for each number of relevant tokens."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    groups = coloured_rows(table, "relevant")
    for relevant, rows, colour in groups:
        axes.fill_between(rows["snr"], rows["lower"], rows["upper"], color=colour, alpha=0.25, linewidth=0)
        axes.plot(rows["snr"], rows[["lower", "upper"]], color=colour, linewidth=1.4)
        axes.plot(rows["snr"], rows["risk"], "o", color=colour, markersize=5)
        first = rows.iloc[0]
        name = f"$r={relevant}$" + (" relevant tokens" if relevant == groups[0][0] else "")
        label(axes, first["snr"], first["risk"], name, colour, va="bottom", xytext=(-6, 6))
    (_, upper, lightest), *_, (_, lower, darkest) = groups
    row = upper.iloc[4]
    label(axes, row["snr"], row["upper"], "best sigmoid head", lightest, va="bottom", xytext=(2, 4))
    arrow = {"arrowstyle": "->", "color": ink(), "linewidth": 0.8, "relpos": (0, 0.5)}
    place = upper[["snr", "risk"]].iloc[2]
    axes.annotate("Bayes risk, simulated", place, (10.5, 0.56), va="center", fontsize=11, arrowprops=arrow)
    row, text = lower.iloc[2], "separate blocks,\na lower bound"
    label(axes, row["snr"], row["lower"], text, darkest, ha="right", va="top", xytext=(-8, -8))
    axes.set(xlim=(0, None), ylim=(0, 1.03), xlabel=r"signal strength, $\nu$", ylabel="Bayes risk")
    return figure
