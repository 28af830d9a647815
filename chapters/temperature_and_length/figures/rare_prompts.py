r"""If scores are large, rare prompts carry the mean participation, and most prompts share the weight more evenly.

Left: the power of $1/L$ in $\sum p^2$ against the size $c=\tau/\sqrt{2\ln L}$ of the scores, for the mean over prompts
and for a typical prompt, at a million tokens (solid), with the limits for $L\to\infty$, by a heuristic (dashed).
Right: prompts are ordered by their largest score, those with the largest scores first. The curves show the part of the
mean participation that a fraction of the prompts carries, at one $c$ and several lengths; dotted: a part equal to the
fraction. All solid curves are exact.

Alt: Two panels. Left, two falling curves that agree up to about one half and then separate, the typical prompt's above
the mean's, each above a dashed limit. Right, curves that bulge to the upper left, more strongly for longer prompts:
at the longest length nearly all of the mean is in a tiny fraction of the prompts.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from chapters.temperature_and_length.rare_contributions import RARE, Averages, Contributions
from chapters.temperature_and_length.scalings import Curves, mean_exponent, typical_exponent
from chapters.temperature_and_length.style import ROOT, SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence

EXPONENT, SHARE = "exponent", "share"
COLOURS = {"mean": "C0", "typical": "C1"}
NAMES = {"mean": "mean", "typical": "typical prompt"}
PLACES = {"mean": {"xytext": (-26, -14), "ha": "right"}, "typical": {"xytext": (12, 12)}}


def numbers(
    averages: Sequence[Averages], carried: Sequence[Contributions], small: Contributions, normal: Curves
) -> Numbers:
    """Return exponents against c, contributions to the mean, and the claims on rare prompts and on both exponents."""
    claims = (_carried_claim(carried, small), *(_slope_claim(average, normal) for average in COLOURS))
    return Numbers(_table(averages, carried), claims)


def _table(averages: Sequence[Averages], carried: Sequence[Contributions]) -> Table:
    """Return exponents by length and c, then contributions by length and fraction of the prompts."""
    exponents = [
        pd.DataFrame(
            {
                "panel": EXPONENT,
                "curve": average,
                "log_length": curves.log_length,
                "x": curves.ratios,
                "y": -np.log(getattr(curves, average)) / curves.log_length,
                "limit": limit(curves.ratios),
            }
        )
        for curves in averages
        for average, limit in (("mean", mean_exponent), ("typical", typical_exponent))
    ]
    shares = [
        pd.DataFrame(
            {"panel": SHARE, "curve": "mean", "log_length": curve.log_length, "x": curve.chance, "y": curve.share}
        ).assign(limit=curve.chance)
        for curve in carried
    ]
    columns = {
        "panel": Column(
            "`exponent`: ln(1/Σp²)/ln L against c; `share`: part of the mean against the fraction of prompts", "name"
        ),
        "curve": Column("`mean`: E Σp²; `typical`: exp E ln Σp²", "name"),
        "log_length": Column("ln L"),
        "x": Column("c = τ/√(2 ln L), or the fraction of prompts, those with the largest scores first"),
        "y": Column(
            "ln(1/Σp²)/ln L of the mean or of a typical prompt, or the part of E Σp² that these prompts carry",
            absolute=1e-6,
        ),
        "limit": Column("Limit of the exponent [heuristic], or a part equal to the fraction"),
    }
    return Table(pd.concat([*exponents, *shares], ignore_index=True), columns)


def _carried_claim(carried: Sequence[Contributions], small: Contributions) -> Claim:
    """Claim that rare prompts carry nearly all of the mean."""
    longest = max(carried, key=lambda curve: curve.log_length)
    return Claim.at_most(
        "temperature-rare",
        (
            f"At c = {longest.ratio:g} and ln L = {longest.log_length:g}, the {100 * RARE:g} % of the prompts with the "
            "largest scores carry nearly all of the mean participation (measured: the part of the mean in all other "
            "prompts)."
        ),
        longest.of_other_prompts,
        0.01,
        because="the limit for long prompts is 0; without rare prompts nearly all of the mean would be in the others",
        source="derived here",
        box="rare-prompts",
        alternative=Alternative(
            f"scores of size c = {small.ratio:g}, where mean and typical participation agree", small.of_other_prompts
        ),
    )


def _slope_claim(average: str, normal: Curves) -> Claim:
    """Claim the exponent with which the mean or the typical participation falls at fixed c."""
    curve = normal[ROOT]
    ratio, log_lengths = float(curve.ratios[-1]), curve.log_lengths[-2:]
    step = float(np.diff(log_lengths)[0])
    slopes = {name: float(-np.diff(np.log(getattr(curve, name)[-2:]))[0]) / step for name in COLOURS}
    formula, exponent = {
        "mean": ("(1 - c²)²/4c²", float(mean_exponent(ratio))),
        "typical": ("2(1 - c)²", float(typical_exponent(ratio))),
    }[average]
    other = next(name for name in COLOURS if name != average)
    return Claim.equal(
        f"temperature-{average}-exponent",
        (
            f"At c = {ratio:.2g} the {average} participation falls like the power {formula} of 1/L (measured: the "
            f"slope between ln L = {log_lengths[0]:.4g} and {log_lengths[1]:.4g})."
        ),
        float(slopes[average]),
        exponent,
        within=float(1 / log_lengths[0]),
        because="the next factor is a power of ln L of order at most 1, which changes the slope by at most 1/ln L",
        source="heuristic",
        box="rare-prompts",
        alternative=Alternative(f"the slope of the {other} participation", float(slopes[other])),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw, on the left, mean and typical exponent at the shorter length; on the right, contributions to the mean."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    exponents, shares = (table[table["panel"] == panel] for panel in (EXPONENT, SHARE))
    shorter = exponents[exponents["log_length"] == exponents["log_length"].min()]
    for average, colour in COLOURS.items():
        curve = shorter[shorter["curve"] == average]
        left.plot(curve["x"], curve["y"], color=colour, linewidth=2)
        left.plot(curve["x"], curve["limit"], color=colour, linewidth=1.2, linestyle="--")
        row = curve.iloc[(curve["x"] - 0.62).abs().argmin()]
        label(left, row["x"], row["y"], NAMES[average], colour, **PLACES[average])
    left.set(xlabel=r"size of the scores, $c$", ylabel=r"exponent, $\ln(1/\Sigma p^2)\,/\,\ln\,L$", ylim=(-0.03, 1.03))
    left.set_title(rf"at $\ln\,L={shorter['log_length'].iloc[0]:.3g}$")
    for log_length, colour in zip(
        sorted(shares["log_length"].unique()), sequence(shares["log_length"].nunique()), strict=True
    ):
        curve = shares[shares["log_length"] == log_length]
        right.plot(curve["x"], curve["y"], color=colour, linewidth=2, label=rf"$\ln\,L={log_length:.3g}$")
    right.plot(curve["x"], curve["limit"], color=ink(), linewidth=1.2, linestyle=":")
    right.set(xscale="log", xlabel="fraction of prompts, largest scores first", ylabel="their part of the mean")
    right.set(ylim=(-0.03, 1.03), title="which prompts carry the mean")
    right.legend(loc="lower left", bbox_to_anchor=(0.0, 0.08))
    right.xaxis.set_minor_locator(NullLocator())
    headline(figure, "For large scores rare prompts carry the mean; most share the weight more evenly")
    return figure
