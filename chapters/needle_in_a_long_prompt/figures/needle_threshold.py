r"""Softmax finds the relevant token at the signal strength at which the weights of the other tokens freeze.

All curves are exact. Dotted: the threshold $\nu = 2\ln L$, a theorem about $L\to\infty$. The Bayes risk is that of the
best softmax head. The participation $\mathbb{E}\sum p^2$ is that of softmax weights of the same scale $\tau=\sqrt\nu$
on a prompt *without* a relevant token; its limit is that of the random-energy model.

Alt: Two panels. Left, the risk falls from one to zero around a dotted line at one, more steeply for longer prompts.
Right, the participation rises from almost nothing to several tenths, and approaches from above a dashed curve that has
a corner at the same place.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONG_DECADE
from chapters.needle_in_a_long_prompt.thresholds import linear_threshold
from chapters.needle_in_a_long_prompt.transition import FrozenWeights, Transition
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label


def numbers(curves: Mapping[int, Transition], weights: FrozenWeights) -> Numbers:
    """Return the curves; claim that the weights freeze at the threshold, and that the step gets steeper."""
    columns = {
        "decade": Column("Decimal logarithm of the prompt length $L$"),
        "ratio": Column("Signal strength over the threshold, $ν/(2 ln L)$"),
        "snr": Column("Signal strength $ν$"),
        "risk": Column("Bayes risk, that of the best softmax head", absolute=1e-10),
        "participation": Column(
            "$𝔼 Σp²$ of softmax weights at the same scale $√ν$ on a prompt without a relevant token"
        ),
        "frozen": Column("Participation in the random-energy model, for $L = ∞$"),
    }
    groups = [
        {
            "decade": decade,
            "ratio": curve.ratios,
            "snr": curve.snrs,
            "risk": curve.risk,
            "participation": curve.participation,
            "frozen": curve.frozen,
        }
        for decade, curve in curves.items()
    ]
    claim = Claims("needle")
    shorter, longer = weights.participation
    shrinks = np.sqrt(weights.decades[1] / weights.decades[0]) - 1.0
    claim.equal(
        "freezing",
        "Softmax weights without a relevant token are frozen beyond the threshold: their participation is near "
        "$1 - √(2 ln L/ν)$, the value of the random-energy model (participation at "
        f"$ν = {weights.excess:g}·2 ln L$, $L = 10^{{{weights.decades[1]}}}$).",
        longer,
        weights.frozen,
        within=abs(longer - shorter) / shrinks,
        because="corrections fall at least like $1/√(ln L)$, so that the error at the longer length is at most this",
        source="derived here",
        box="frozen-participation",
        rejects=("no freezing: $e^ν/L$, the formula for long prompts, which is at most 1", 1),
    )
    shortest = min(curves)
    claim.at_most(
        "sharpening",
        "The Bayes risk as a function of $ν/(2 ln L)$ approaches a step on long prompts (width over which it falls "
        f"from 0.8 to 0.2 at $L = 10^{{{LONG_DECADE}}}$, over that for the shortest prompt).",
        _step_width(curves[LONG_DECADE]) / _step_width(curves[shortest]),
        (shortest / LONG_DECADE) ** 0.25,
        because="the heuristic gives the square root of the ratio of $ln L$; the bound has half that power",
        source="heuristic",
        box="tallest-straw",
        rejects=(
            "the same for linear attention, in units of its threshold",
            _step_width_of_linear(LONG_DECADE) / _step_width_of_linear(shortest),
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risk on the left and the participation on the right, against the same axis."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True)
    for decade, curve, colour in coloured_rows(table, "decade"):
        left.plot(curve["ratio"], curve["risk"], color=colour, linewidth=2, label=f"$L=10^{{{decade}}}$")
        right.plot(curve["ratio"], curve["participation"], color=colour, linewidth=2)
    for panel, below, beyond in ((left, "not found", "found"), (right, "average\nof many", "a few\ntokens")):
        panel.axvline(1, color=ink(), linestyle=":", linewidth=1.5)
        panel.set_xlabel(r"signal strength, $\nu/(2\,\ln L)$")
        words = {"va": "center", "fontsize": 12, "fontweight": "bold", "xytext": (-8, 0), "linespacing": 1.2}
        label(panel, 1, 0.28 if panel is left else 0.6, below, ink(), **words | {"ha": "right"})
        label(panel, 1, 0.6, beyond, ink(), **words | {"ha": "left", "xytext": (8, 0)})
    limit = {"color": ink(), "linestyle": "--", "linewidth": 1.5}
    right.plot(curve["ratio"], curve["frozen"], **limit)
    label(right, curve["ratio"].max(), curve["frozen"].iloc[-1], r"$L=\infty$", ink())
    left.plot([0, 1, 1, curve["ratio"].max()], [1, 1, 0, 0], **limit, label=r"$L=\infty$")
    left.set(xlim=(0, table["ratio"].max()), ylim=(-0.01, 1.03), ylabel="Bayes risk", title="with a relevant token")
    right.set(ylim=(-0.01, 1.03), title="without a relevant token")
    right.set_ylabel("participation (1: a single token)")
    left.legend(loc="upper right")
    return figure


def _step_width(curve: Transition) -> float:
    """Return the width over which the Bayes risk falls from 0.8 to 0.2, in units of the threshold."""
    return float(np.ptp(np.interp([-0.8, -0.2], -curve.risk, curve.ratios)))


def _step_width_of_linear(decade: int) -> float:
    """Return the same for linear attention."""
    high, half, low = (linear_threshold(10.0**decade, risk) for risk in (0.8, 0.5, 0.2))
    return float((low - high) / half)
