r"""Outputs of Laplace tokens have a limit below the pole $1/b$; beyond it they grow with the length forever.

Outputs of independent prompts at three tilts $\xi$: the mean with two standard errors (points), and the central half
and nine tenths of the prompts. The vertical scales differ. The limit is $2b^2\xi/(1-b^2\xi^2)$; the constant is fitted.
Left: the fluctuation is finite, and the rate is $1/\sqrt L$. Middle: the fluctuation is infinite, and the rate is
$L^{b|\xi|-1}\ln L$. Right: the random part keeps its size.

Alt: Three panels of attention output against prompt length. Left: bars shrink onto a horizontal dashed line. Middle:
bars drift up to a dashed line and are still wide at the longest length. Right: the outputs climb along a straight line
in the logarithm of the length, and the bars keep their width.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from chapters.gaussian_limit.laplace_prompts import BETWEEN, BEYOND, INSIDE, ByTilt, growth, spread_exponent
from chapters.gaussian_limit.long_laplace_prompts import FAR, FAR_PROMPTS, FarErrors, far_growth, stable_median
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label
from lib.statistics import comparison_quantile, standard_error

TITLES = ("{}, below the pole $1/b$:\nconverges", "{}, just below:\nconverges slowly", "{}, beyond:\ngrows forever")


def numbers(outputs: Mapping[int, ByTilt], long_prompts: FarErrors) -> Numbers:
    """Return mean and quantiles by tilt and length, and the claims on the slow rate, the growth and the spread."""
    beyond = growth(outputs, BEYOND)
    rows = [
        {
            "tilt": tilt,
            "length": length,
            "prompts": values.size,
            "mean": values.mean(),
            "std_error": standard_error(values),
            **dict(zip(("q05", "q25", "q75", "q95"), np.quantile(values, (0.05, 0.25, 0.75, 0.95)), strict=True)),
            "limit": 2 * tilt / (1 - tilt**2) if tilt < 1 else np.nan,
            "growth": beyond.offset + np.log(length) if tilt > 1 else np.nan,
        }
        for tilt in (INSIDE, BETWEEN, BEYOND)
        for length, by_tilt in outputs.items()
        for values in (by_tilt[tilt],)
    ]
    columns = {
        "tilt": Column("Tilt $ξ$, in units of the pole $1/b$", "1/b"),
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "prompts": Column("Independent prompts", "prompts"),
        "mean": Estimate("Mean output over prompts", "b", std_error="std_error"),
        "q05": Column("5 % quantile of the output over prompts", "b", moves_with="mean"),
        "q25": Column("25 % quantile", "b", moves_with="mean"),
        "q75": Column("75 % quantile", "b", moves_with="mean"),
        "q95": Column("95 % quantile", "b", moves_with="mean"),
        "limit": Column("$2b²ξ/(1 - b²ξ²)$, below the pole", "b"),
        "growth": Column("$b ln L$ + const, beyond the pole, const fitted", "b", moves_with="mean"),
    }
    claim = Claims("gaussian-limit-laplace", source="heuristic", box="laplace-regimes")
    slope, std_error = far_growth(long_prompts)
    claim.equal(
        "middle",
        f"At $ξ = {BETWEEN}/b$ the distance of the output from its limit is of the order $L^{{b|ξ| - 1}} ln "
        "L$: its median times $L^{1 - b|ξ|}$ grows with each unit of $ln L$ by $b$ times the median of a "
        f"stable variable (measured: this growth, in units of $b$, between $ln L = {FAR[0]:g}$ and "
        f"{FAR[1]:g} on {FAR_PROMPTS:,} prompts each).",
        slope,
        stable_median(),
        rejects=("the rate has no factor $ln L$", 0.0),
        std_error=std_error,
    )
    # beyond the pole: two claims share their tolerance
    inside = f"the outputs converge, as they do for the same prompts at ${INSIDE}/b$"
    claim.equal(
        "growth",
        f"At $ξ = {BEYOND}/b$, beyond the pole, the mean output of Laplace tokens grows by $b$ for each "
        "unit of $ln L$ (measured: this growth, in units of $b$).",
        beyond.slope,
        1,
        within=comparison_quantile(2) * beyond.std_error,
        because="99.9 % quantile of the larger of two normal deviations, times the standard error",
        rejects=(inside, growth(outputs, INSIDE).slope),
        std_error=beyond.std_error,
    )
    (spread, spread_error), (shrinking, _) = (spread_exponent(outputs, tilt) for tilt in (BEYOND, INSIDE))
    claim.equal(
        "spread",
        f"At $ξ = {BEYOND}/b$ the output stays random: its mean absolute deviation over prompts does not "
        "depend on $L$ (measured: its exponent in $L$).",
        spread,
        0,
        within=comparison_quantile(2) * spread_error,
        because="99.9 % quantile of the larger of two normal deviations, times the standard error",
        rejects=(inside, shrinking),
        std_error=spread_error,
    )
    return Numbers(Table.of(rows, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per tilt: mean and quantiles of the output against the length."""
    figure, panels = plt.subplots(1, len(TITLES), figsize=(WIDE, 4.7), sharex=True)
    tilts, curves = zip(*table.groupby("tilt"), strict=True)
    for panel, tilt, curve, title, colour in zip(panels, tilts, curves, TITLES, ("C0", "C1", "C2"), strict=True):
        panel.vlines(curve["length"], curve["q05"], curve["q95"], color=colour, linewidth=1.5)
        panel.vlines(curve["length"], curve["q25"], curve["q75"], color=colour, linewidth=6, alpha=0.5)
        error_bars(panel, curve["length"], curve["mean"], curve["std_error"], color=colour, marker="o", markersize=5)
        panel.plot(curve["length"], curve["limit"].fillna(curve["growth"]), color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xscale="log", xlabel="prompt length $L$", title=title.format(f"$\\xi={tilt:g}/b$"))
        panel.minorticks_off()
        panel.margins(x=0.1)
    last = [curve.iloc[-1] for curve in curves]
    look = {"xytext": (2, 8), "ha": "right", "va": "bottom"}
    label(panels[0], last[0]["length"], last[0]["limit"], "limit", ink(), **look)
    label(panels[1], last[1]["length"], last[1]["limit"], "limit", ink(), xytext=(6, 0))
    label(panels[2], last[2]["length"] / 30, last[2]["growth"], "$b\\,\\ln L$ + const", ink(), **look)
    bars, line = curves[0].iloc[1], {"arrowstyle": "-", "color": "C0", "linewidth": 0.8}
    for quantile, words, height in (("q95", "nine tenths\nof prompts", 50), ("q75", "half", 40)):
        label(panels[0], bars["length"], bars[quantile], words, "C0", xytext=(24, height), arrowprops=line)
    panels[0].set_ylabel("output for Laplace tokens, in units of $b$")
    panels[-1].yaxis.set_major_locator(MultipleLocator(4))
    return figure
