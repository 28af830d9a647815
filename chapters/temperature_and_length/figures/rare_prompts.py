r"""If scores are large but not frozen, rare prompts carry the mean participation; most prompts share more evenly.

The part of the mean participation that a fraction of the prompts carries, those with the largest scores first, at one
size $c=\tau/\sqrt{2\ln L}$ of the scores. Curves are exact. The table also has the power of $1/L$ in $\sum p^2$ for the
mean over prompts and for a typical prompt, as a function of $c$.

Alt: Curves that bulge to the upper left, more strongly for longer prompts: at the longest length nearly all of the mean
is in a tiny fraction of the prompts. A dotted curve far below shows equal parts.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from chapters.temperature_and_length.rare_contributions import RARE, Averages, Contributions
from chapters.temperature_and_length.scalings import Curve, Curves, mean_exponent, typical_exponent
from chapters.temperature_and_length.style import MEAN, ROOT, TYPICAL
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label


def numbers(
    averages: Sequence[Averages], carried: Sequence[Contributions], small: Contributions, normal: Curves
) -> Numbers:
    """Return exponents against c, contributions to the mean, and the claims on rare prompts and on both exponents."""
    exponents = [
        {
            "panel": "exponent",
            "curve": average,
            "log_length": curves.log_length,
            "x": curves.ratios,
            "y": -np.log(getattr(curves, average)) / curves.log_length,
            "limit": limit(curves.ratios),
        }
        for curves in averages
        for average, limit in ((MEAN, mean_exponent), (TYPICAL, typical_exponent))
    ]
    shares = [
        {
            "panel": "share",
            "curve": MEAN,
            "log_length": curve.log_length,
            "x": curve.chance,
            "y": curve.share,
            "limit": curve.chance,
        }
        for curve in carried
    ]
    columns = {
        "panel": Column(
            "`exponent`: $ln(1/Σp²)/ln L$ against $c$; `share`: part of the mean against the fraction of prompts",
            "name",
        ),
        "curve": Column("`mean`: $𝔼 Σp²$; `typical`: $exp 𝔼 ln Σp²$", "name"),
        "log_length": Column("$ln L$"),
        "x": Column("$c = τ/√(2 ln L)$, or the fraction of prompts, those with the largest scores first"),
        "y": Column(
            "$ln(1/Σp²)/ln L$ of the mean or of a typical prompt, or the part of $𝔼 Σp²$ that these prompts carry",
            absolute=1e-6,
        ),
        "limit": Column("Limit of the exponent [heuristic], or a part equal to the fraction"),
    }
    return Numbers(Table.of([*exponents, *shares], columns), _claims(carried, small, normal[ROOT]))


def _claims(carried: Sequence[Contributions], small: Contributions, root: Curve) -> Claims:
    claim = Claims("temperature", source="heuristic", box="rare-prompts")
    longest = max(carried, key=lambda curve: curve.log_length)
    claim.at_most(
        "rare",
        f"At $c = {longest.ratio:g}$ and $ln L = {longest.log_length:g}$, the {100 * RARE:g} % of the prompts with "
        "the largest scores carry nearly all of the mean participation (measured: the part of the mean in all other "
        "prompts).",
        longest.of_other_prompts,
        0.01,
        because="the limit for long prompts is 0; without rare prompts nearly all of the mean would be in the others",
        source="derived here",
        rejects=(
            f"scores of size $c = {small.ratio:g}$, where mean and typical participation agree",
            small.of_other_prompts,
        ),
    )
    ratio, (first, last) = root.ratios[-1], root.log_lengths[-2:]
    slopes = {
        average: np.log(values[-2] / values[-1]) / (last - first)
        for average, values in ((MEAN, root.mean), (TYPICAL, root.typical))
    }
    for average, formula, exponent, other in (
        (MEAN, "$(1 - c²)²/4c²$", mean_exponent(ratio), TYPICAL),
        (TYPICAL, "$2(1 - c)²$", typical_exponent(ratio), MEAN),
    ):
        claim.equal(
            f"{average}-exponent",
            f"At $c = {ratio:.2g}$ the {average} participation falls like the power {formula} of $1/L$ (measured: the "
            f"slope between $ln L = {first:.4g}$ and ${last:.4g}$).",
            slopes[average],
            exponent,
            within=1 / first,
            because="the next factor is a power of $ln L$ of order at most 1, which changes the slope by at most "
            "$1/ln L$",
            rejects=(f"the slope of the {other} participation", slopes[other]),
        )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the part of the mean that the prompts with the largest scores carry, one curve per length."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    shares = table[table["panel"] == "share"].sort_values("x")
    for log_length, curve, colour in coloured_rows(shares, "log_length"):
        axes.plot(curve["x"], curve["y"], color=colour, linewidth=2.2)
        name, middle = rf"$\ln\,L={log_length:.3g}$", curve.iloc[(curve["y"] - 0.5).abs().argmin()]
        if log_length == shares["log_length"].min():
            tokens = f"{name},\n$10^{{{round(log_length / np.log(10))}}}$ tokens"
            label(axes, middle["x"], middle["y"], tokens, colour, xytext=(8, -12))
        elif curve["y"].min() < 0.5:
            label(axes, middle["x"], middle["y"], name, colour, xytext=(-8, 0), ha="right")
        else:
            start = curve.iloc[0]
            label(axes, start["x"], start["y"], name, colour, xytext=(10, -12 if start["y"] < 0.9 else -10))
    axes.plot(curve["x"], curve["limit"], color=ink(), linewidth=1.4, linestyle=":")
    label(axes, 1e-6, 0.35, "scores are large,\nbut not frozen", ink(), xytext=(10, 0), va="top", fontsize=12)
    label(axes, 0.1, 0.1, "equal parts", ink(), xytext=(0, 4), ha="right")
    axes.set(xscale="log", xlabel="fraction of prompts, largest scores first", xlim=(None, 1), ylim=(-0.03, 1.05))
    axes.set_ylabel("their part of the mean participation")
    axes.minorticks_off()
    return figure
