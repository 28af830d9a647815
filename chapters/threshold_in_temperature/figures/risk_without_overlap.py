r"""A cold head that has not found the relevant token has a higher risk than the output 0.

The head has the best value, but its key is orthogonal to the hidden direction, so that the relevant token has no
advantage. Curves are exact, one per prompt length, in units of the risk of the output 0, which is also the mean-field
risk of the head, without a term for the other tokens. Shaded: the excess of cold heads.

Alt: Chart of excess risk against temperature. At low temperatures coloured curves are well above one. They fall towards
one as the temperature rises, and approach a dashed line that reaches one at temperature one. A dotted line, named
"output 0", is flat at one; the region above it is shaded left of temperature one and named "worse than the output 0".
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from chapters.threshold_in_temperature.below_threshold import OtherTokens, RiskWithoutOverlap
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, legend_line, legend_with


def numbers(risks: Sequence[RiskWithoutOverlap], others: OtherTokens) -> Numbers:
    """Return the risks by length and temperature; claim the participation of the other tokens below freezing."""
    groups = [
        {"decade": curve.decade, "temperature": curve.temperatures, "risk": curve.risk, "limit": curve.limit}
        for curve in risks
    ]
    columns = {
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "temperature": Column("Temperature $√(2 ln L)/τ$, 1 at freezing"),
        "risk": Column("Excess risk over $γ²$ of a head whose key is orthogonal to the hidden direction, $v = v*$"),
        "limit": Column("The same in the limit of long prompts"),
    }
    claim = Claims("threshold-in-temperature", source="derived here", box="risk-in-temperature")
    shorter, longer = others.participation
    shrinks = np.sqrt(others.log_lengths[1] / others.log_lengths[0]) - 1.0
    claim.equal(
        "others",
        "Below freezing the other tokens add their participation to the risk of a head that has not found the relevant "
        rf"token ($\mathbb{{E}} Σp²$ over the other tokens at {others.temperature:.3g} times the freezing temperature "
        f"and $ln L = {others.log_lengths[1]:g}$).",
        longer,
        others.limit,
        within=abs(longer - shorter) / shrinks,
        because="corrections fall at least like $1/√(ln L)$, so that the error at the longer length is at most this",
        rejects=("the mean-field formula of the risk, without a term for the other tokens", 0.0),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact risks, their limit, and the mean-field risk."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    for decade, curve, colour in coloured_rows(table, "decade"):
        axes.plot(curve["temperature"], curve["risk"], color=colour, linewidth=2, label=f"$L=10^{{{decade}}}$")
    corner = pd.DataFrame({"temperature": [1.0], "limit": [1.0]})
    limit = pd.concat([table.drop_duplicates("temperature"), corner]).sort_values("temperature")
    axes.plot(limit["temperature"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5)
    axes.axhline(1, color=ink(), linestyle=":", linewidth=1.8)
    cold = table[table["temperature"] <= 1].groupby("temperature")["risk"].max()
    axes.fill_between(cold.index, 1, cold, color="C1", alpha=0.15, linewidth=0)
    label(axes, 0.58, 1.2, "worse than\noutput 0", "C1", xytext=(0, 0), ha="center", fontsize=12)
    label(axes, table["temperature"].max(), 1, "output 0", ink())
    for x, words in ((0.65, "cold"), (2.0, "hot")):
        label(axes, x, 0.86, words, ink(), xytext=(0, 0), ha="center")
    axes.axvline(1, ymax=0.6, color=ink(), linewidth=1)
    axes.set(xlabel=r"temperature $\sqrt{2\,\ln L}/\tau$", ylabel="excess risk, relevant token not found")
    axes.set(xlim=(table["temperature"].min(), table["temperature"].max()), ylim=(0.8, 1.05 * table["risk"].max()))
    legend_with(axes, {r"limit $L\,\to\,\infty$": legend_line("--", 1.5)}, loc="upper right")
    return figure
