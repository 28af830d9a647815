r"""For large scores rare prompts carry the mean: most prompts share the weight more evenly.

Left: the power of $1/L$ of $\sum p^2$ against $c=\tau/\sqrt{2\ln L}$, of its mean and of a typical prompt, at two
lengths; dashed: their limits, a heuristic. Right: prompts put in order of their largest score, and the share of the
mean participation that the rarest of them carry, at one $c$ and several lengths. Dotted: a share of its own size. All
curves are exact.

Alt: Two panels. Left, two pairs of falling curves that agree up to about one half and then part, the typical prompt's
above the mean's, with dashed limits. Right, curves that bulge to the upper left the more, the longer the prompt: for
the longest nearly all of the mean is in a tiny share of the prompts.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from chapters.temperature_and_length.rare_contributions import RARE, Averages, Carried
from chapters.temperature_and_length.scalings import Curves, mean_exponent, typical_exponent
from chapters.temperature_and_length.style import ROOT, SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, legend_line, sequence

EXPONENT, SHARE = "exponent", "share"
COLOURS = {"mean": "C0", "typical": "C1"}


def numbers(planes: Sequence[Averages], carried: Sequence[Carried], small: Carried, normal: Curves) -> Numbers:
    """Exponents against c; who carries the mean; and the slopes along the scaling that keeps c."""
    claims = (_carried_claim(carried, small), *(_slope_claim(average, normal) for average in COLOURS))
    return Numbers(_table(planes, carried), claims)


def _table(planes: Sequence[Averages], carried: Sequence[Carried]) -> Table:
    """Exponents by length and c, mean and typical; then shares by length and chance."""
    exponents = [
        pd.DataFrame(
            {
                "panel": EXPONENT,
                "curve": average,
                "log_length": plane.log_length,
                "x": plane.ratios,
                "y": -np.log(getattr(plane, average)) / plane.log_length,
                "limit": limit(plane.ratios),
            }
        )
        for plane in planes
        for average, limit in (("mean", mean_exponent), ("typical", typical_exponent))
    ]
    shares = [
        pd.DataFrame(
            {"panel": SHARE, "curve": "mean", "log_length": one.log_length, "x": one.chance, "y": one.share}
        ).assign(limit=one.chance)
        for one in carried
    ]
    columns = {
        "panel": Column(
            "`exponent`: ln(1/Σp²)/ln L against c; `share`: of the mean, against the share of prompts", "name"
        ),
        "curve": Column("`mean` E Σp² or `typical` exp E ln Σp²", "name"),
        "log_length": Column("ln L"),
        "x": Column("c = τ/√(2 ln L), or the share of prompts, those of the largest scores first"),
        "y": Column(
            "ln(1/Σp²)/ln L of the mean or of a typical prompt, or the share of E Σp² that these prompts carry",
            absolute=1e-6,
        ),
        "limit": Column("Limit of the exponent [heuristic], or an equal share"),
    }
    return Table(pd.concat([*exponents, *shares], ignore_index=True), columns)


def _carried_claim(carried: Sequence[Carried], small: Carried) -> Claim:
    """The rarest prompts carry the mean."""
    longest = max(carried, key=lambda one: one.log_length)
    return Claim(
        id="temperature-rare",
        statement=(
            f"At c = {longest.ratio:g} rare prompts carry the mean participation: the share of it at ln L = "
            f"{longest.log_length:g} in all prompts but the {100 * RARE:g} % with the largest scores."
        ),
        source="derived here",
        box="rare-prompts",
        measured=longest.of_the_others,
        expected=0.01,  # the limit is 0
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(f"scores of c = {small.ratio:g}, where mean and typical agree", small.of_the_others),
    )


def _slope_claim(average: str, normal: Curves) -> Claim:
    """How the mean, or a typical prompt, falls with the length at fixed c."""
    curve = normal[ROOT]
    ratio, log_lengths = float(curve.ratios[-1]), curve.log_lengths[-2:]
    step = float(np.diff(log_lengths)[0])
    slopes = {name: float(-np.diff(np.log(getattr(curve, name)[-2:]))[0]) / step for name in COLOURS}
    exponents = {"mean": float(mean_exponent(ratio)), "typical": float(typical_exponent(ratio))}
    other = next(name for name in COLOURS if name != average)
    return Claim(
        id=f"temperature-{average}-exponent",
        statement=(
            f"At c = {ratio:.2g} the {average} participation falls like a power of the length, of its own: the slope "
            f"between ln L = {log_lengths[0]:.4g} and {log_lengths[1]:.4g}."
        ),
        source="heuristic",
        box="rare-prompts",
        measured=float(slopes[average]),
        expected=exponents[average],
        # the next term is a power of ln L, at most 1: its slope in ln L is at most this
        tolerance=float(1 / log_lengths[0]),
        alternative=Alternative(f"the slope of the {other} participation", float(slopes[other])),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Left two averages parting; right who carries the mean."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    exponents, shares = (table[table["panel"] == panel] for panel in (EXPONENT, SHARE))
    lengths = sorted(exponents["log_length"].unique())
    for log_length, width in zip(lengths, np.linspace(1.2, 2.6, len(lengths)), strict=True):
        for average, colour in COLOURS.items():
            curve = exponents[(exponents["log_length"] == log_length) & (exponents["curve"] == average)]
            left.plot(curve["x"], curve["y"], color=colour, linewidth=width)
            if log_length == lengths[-1]:
                left.plot(curve["x"], curve["limit"], color=colour, linewidth=1.2, linestyle="--")
    handles = [Line2D([], [], color=colour) for colour in COLOURS.values()] + [legend_line("--", 1.2)]
    left.legend(handles, ["mean over prompts", "typical prompt", "limits"], loc="upper right")
    thin, thick = (f"{log_length:.0f}" for log_length in (lengths[0], lengths[-1]))
    left.set(xlabel=r"size of the scores, $c$", ylabel=r"$\ln(1/\Sigma p^2)\,/\,\ln\,L$", ylim=(-0.03, 1.03))
    left.set_title(rf"thin: $\ln\,L={thin}$, thick: ${thick}$")
    for log_length, colour in zip(
        sorted(shares["log_length"].unique()), sequence(shares["log_length"].nunique()), strict=True
    ):
        curve = shares[shares["log_length"] == log_length]
        right.plot(curve["x"], curve["y"], color=colour, linewidth=2, label=rf"$\ln\,L={log_length:.3g}$")
    right.plot(curve["x"], curve["limit"], color=ink(), linewidth=1.2, linestyle=":")
    right.set(xscale="log", xlabel="share of prompts, largest scores first", ylabel="their share of the mean")
    right.set(ylim=(-0.03, 1.03), title="who carries the mean")
    right.legend(loc="lower left", bbox_to_anchor=(0.0, 0.08))
    right.xaxis.set_minor_locator(NullLocator())
    headline(figure, "For large scores rare prompts carry the mean; most share the weight more evenly")
    return figure
