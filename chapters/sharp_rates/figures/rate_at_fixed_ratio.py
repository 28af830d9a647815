r"""The faster a query grows with the prompt, the more slowly the error falls.

The vertical axis is $-\,d\ln Q/d\ln L$ along $\tau=a\sqrt{2\ln L}$, at a fixed ratio $a$. Solid curves are exact, one
per length; the dashed curve is the heuristic limit $r(a)$. Beyond $a=\frac12$ rare large scores dominate the mean
square; beyond $a=1$ a longer prompt does not reduce the error.

Alt: Line chart of an exponent against a. A dashed curve falls from one, bends at 0.58, and reaches zero at one,
where it stays. Exact curves approach it as the length grows; the longest is indistinguishable from it.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.slopes import LocalExponents, ratio_exponent
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label


def numbers(exponents: Mapping[float, LocalExponents]) -> Numbers:
    """Return local exponents and their limit, and the claim that they agree at ln L = READ_AT."""
    groups = [
        {"log_length": log_length, "ratio": curve.ratio, "slope": curve.slope, "exponent": ratio_exponent(curve.ratio)}
        for log_length, curve in exponents.items()
    ]
    columns = {
        "log_length": Column("$ln L$"),
        "ratio": Column("$a = τ/√(2 ln L)$, fixed while $L$ grows"),
        "slope": Column("Exact $-d ln Q/d ln L$ at fixed $a$", absolute=1e-9),
        "exponent": Column("$r(a)$, the limit of the slope by the heuristic"),
    }
    table = Table.of(groups, columns)
    # for a > 1 the error grows like ln L, so that its exponent there is -1/ln L and not exactly 0
    read = table.frame[(table.frame["log_length"] == READ_AT) & (table.frame["ratio"] > 0)]
    unfrozen = 1 - 2 * read["ratio"] ** 2
    claim = Claims("sharp-rates", source="heuristic", box="fixed-ratio-exponent")
    claim.at_most(
        "fixed-ratio",
        "For a query that grows with the prompt, $τ = a√(2 ln L)$, the error falls with exponent $r(a)$ (measured: "
        f"the largest distance of the local exponents at $ln L = {READ_AT:g}$, over {len(read)} ratios $a$ up to "
        f"{read['ratio'].max():.2g}).",
        (read["slope"] - read["exponent"]).abs().max(),
        0.0,
        within=2 / READ_AT,
        because="$2/ln L$: factors that are powers of $ln L$ change the local exponent by multiples of $1/ln L$, up to "
        "two",
        rejects=("no freezing: the exponent is $1 - 2a²$ at every $a$", (read["slope"] - unfrozen).abs().max()),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one exact curve per length, the limit, and the two ratios at which it bends."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    for log_length, curve, colour in coloured_rows(table, "log_length"):
        axes.plot(curve["ratio"], curve["slope"], color=colour, linewidth=2, label=rf"exact, $\ln L={log_length:g}$")
    limit = table.drop_duplicates("ratio").sort_values("ratio")
    axes.plot(limit["ratio"], limit["exponent"], color=ink(), linestyle="--", linewidth=1.5, label="$r(a)$, heuristic")
    rare = "$a=1/\\sqrt{3}$: in rare\nprompts one weight\nis of order one"
    for ratio, text in ((1 / np.sqrt(3), rare), (1.0, "$a=1$:\nfrozen")):
        axes.axvline(ratio, color=ink(), linewidth=0.8, linestyle=":")
        label(axes, ratio, 1.02, text, ink(), xytext=(4, 0), va="top")
    axes.set(xlim=(0, table["ratio"].max()), ylim=(min(-0.12, table["slope"].min()), 1.05))
    axes.set(xlabel=r"growth of the query, $a=\tau/\sqrt{2\,\ln L}$", ylabel="exponent of the error")
    axes.legend(loc="lower left")
    return figure
