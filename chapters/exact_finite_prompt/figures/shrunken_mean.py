r"""The mean output of a long prompt follows the infinite prompt for small queries and gradually stops growing.

The vertical axis is the exact mean output $\tau(1-P)$ of prompts of $L$ tokens, also at lengths that no computer can
hold; that of the infinite prompt is $\tau$ (dashed). Each curve leaves the dashed line gradually and approaches the
mean of the largest of $L$ standard normals, which is below $\sqrt{2\ln L}$ and grows as slowly.

Alt: Line chart. A dashed diagonal is the infinite prompt. Curves, one for each length, leave it one
after the other and flatten out, each towards a short tick at the right edge. The ticks are close together although
the lengths differ by many orders of magnitude.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.mean_deviations import MeanDeviations
from chapters.exact_finite_prompt.mean_outputs import MeanOutputs
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label
from lib.finite_prompt import LARGEST_TAU


def numbers(curves: Mapping[int, MeanOutputs], deviations: MeanDeviations) -> Numbers:
    """Return the exact mean outputs, and the claims on simulated mean outputs and on the ceiling."""
    groups = [
        {"decade": decade, "tau": curve.taus, "mean": curve.mean, "ceiling": curve.ceiling}
        for decade, curve in curves.items()
    ]
    columns = {
        "decade": Column("$log₁₀ L$"),
        "tau": Column("Size of the query, $τ$, which is also the output of the infinite prompt"),
        "mean": Column("Mean output $τ (1 - P)$ along the line of Lemma 2.1, in units of $τ$", absolute=1e-12),
        "ceiling": Column("Mean of the largest of $L$ standard normals, about $√(2 ln L)$"),
    }
    claim = Claims("exact-finite-prompt", source="derived here")
    claim.agree(
        "mean",
        "The mean output of simulated prompts agrees with $Vm + (1 - P)VΓUz$, with $P$ from the quadrature, over "
        "coordinates, query sizes and lengths",
        deviations.shrunk,
        rejects=("no shrinkage: the mean output is the output of the infinite prompt", deviations.unshrunk),
        box="mean-output",
    )
    shortest = curves[min(curves)]
    # at large τ only near ties matter: E[δ/(1 + e^{τδ})] = π²/12 · f(0)/τ² for the distance δ of the two largest scores
    deficit = np.pi**2 / 12 * shortest.tie / LARGEST_TAU**2
    claim.equal(
        "ceiling",
        f"At $L = 10^{{{min(curves)}}}$ and $τ = {LARGEST_TAU:g}$ the mean output is its ceiling, the mean "
        f"{shortest.ceiling:.4f} of the largest of $L$ standard normals, minus $(π²/12)f(0)/τ²$ for near ties.",
        shortest.farthest,
        shortest.ceiling - deficit,
        within=deficit * np.sqrt(2 * shortest.log_length) / LARGEST_TAU,
        because="the order of the next term of the expansion, in which the density of scores varies at rate "
        "$√(2 ln L)$",
        rejects=("no near ties: the output is the largest score", shortest.ceiling),
        box="mean-ceiling",
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per length with its ceiling as a tick, and the line of the infinite prompt."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    end = table["tau"].max()
    for decade, curve, colour in coloured_rows(table, "decade"):
        axes.plot(curve["tau"], curve["mean"], color=colour, linewidth=2)
        ceiling = curve["ceiling"].max()
        axes.plot([0.97 * end, end], [ceiling, ceiling], color=colour, linewidth=3, solid_capstyle="butt")
        label(axes, end, ceiling, f"$L=10^{{{decade}}}$" if decade > 1 else "$L=10$", ink())
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    label(axes, 0.6 * end, 0.6 * end, "infinite prompt\n(Lemma 2.1)", ink(), xytext=(-10, 4), ha="right", va="bottom")
    highest = table["ceiling"].max()
    label(axes, end, highest, "tick: mean of the\nlargest of $L$ normals", ink(), xytext=(0, -22), ha="right")
    axes.set(xlim=(0, end), ylim=(0, 1.15 * highest))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"mean output, $\tau\,(1-P)$")
    return figure
