r"""At every prompt length drawn, the best keys of an opposite pair are small but not zero.

The pair has keys $\pm\omega$ and the values that are best for them. The vertical axis is its mean square error minus
the limit $\omega\to0$, which is one step of debiased gradient descent, times $L^3$; the horizontal axis is
$\omega\sqrt L$. Solid curves are exact, one per prompt length. The dashed curve is the limit of long prompts,
$-4\tau_w^2d(d+2)x^2+c_3x^4$ at $x=\omega\sqrt L$. Markers are the lowest points of the curves on the grid of keys.
Below the line at 0, keys of positive size beat debiased gradient descent.

Alt: Line chart. Solid curves, one per prompt length, start near zero, fall to one minimum each and rise again, more
steeply for longer prompts. They approach a dashed curve of the same shape. A marker is at each minimum, and every
marker is below the horizontal line at zero.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.opposite_heads.exact_risks import Curvature, LimitCurve, PairRisks
from chapters.style import coloured
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, legend_with


def numbers(risks: Sequence[PairRisks], limit: LimitCurve, curvature: Curvature) -> Numbers:
    """Return the change of the error along the keys, with its limit, and the claim on the curvature at zero keys."""
    groups = [
        {
            "length": risk.length,
            "scaled_key": risk.scaled_keys,
            "scaled_change": risk.length**3 * risk.excess,
            "limit": limit.at(risk.scaled_keys),
        }
        for risk in risks
    ]
    columns = {
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "scaled_key": Column("Key of the pair times $√L$"),
        "scaled_change": Column(
            "Mean square error of the best pair minus that of debiased gradient descent, times $L³$", absolute=0.01
        ),
        "limit": Column("Its limit for long prompts at this scaled key"),
    }
    claim = Claims("opposite-heads", source="derived here", box="opposite-keys-curvature")
    claim.equal(
        "curvature",
        f"At $L = {curvature.length:,}$ the error of the pair falls from zero keys on: the coefficient of $ω²$, times "
        "$L²$, is that of the formula.",
        curvature.measured,
        curvature.predicted,
        within=curvature.uncertainty,
        because="the amount by which the extrapolation to zero keys changed the value at the smaller key",
        rejects=("the form for long prompts, without the factors of finite $L$", curvature.long_prompts),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per length with its minimum, and the limit."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    lengths = sorted(table["length"].unique())
    top = -1.25 * min(table["scaled_change"].min(), table["limit"].min())
    for length, colour, marker in coloured(lengths):
        rows = table[table["length"] == length]
        axes.plot(rows["scaled_key"], rows["scaled_change"], color=colour, linewidth=2)
        lowest = rows.loc[rows["scaled_change"].idxmin()]
        axes.plot(lowest["scaled_key"], lowest["scaled_change"], color=colour, marker=marker, markersize=7)
        end = rows[rows["scaled_change"] < top].iloc[-1]
        label(axes, end["scaled_key"], end["scaled_change"], f"$L={length}$", colour, xytext=(8, -4))
    limit = table[table["length"] == lengths[0]]
    axes.plot(limit["scaled_key"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5)
    axes.axhline(0, color=ink(), linestyle=":", linewidth=1.3)
    axes.set(xlabel=r"key times root of the length, $\omega\sqrt{L}$", ylabel=r"change of the error, times $L^3$")
    axes.set(xlim=(0, table["scaled_key"].max()), ylim=(-top, top))
    lines = {r"$L\,\to\,\infty$": legend_line("--", 1.5), "debiased gradient descent": legend_line(":", 1.3)}
    legend_with(axes, {"exact": legend_line("-"), **lines}, loc="upper left")
    return figure
