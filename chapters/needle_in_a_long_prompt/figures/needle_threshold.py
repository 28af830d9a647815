r"""One scale for finding a needle and for freezing without one.

Left: the Bayes risk, that of the best softmax head, against the strength of the hint in units of $2\ln L$, for
prompts of $L$ tokens. Right: the participation $\mathbb{E}\sum p^2$ of softmax weights of the same scale
$\tau=\sqrt\nu$ on a prompt *without* a needle, from the chapter on exact finite prompts. Dashed, left: the
threshold $\nu = 2\ln L$. Dashed, right: what the random-energy model gives for $L=\infty$, zero up to the
threshold and $1-\sqrt{2\ln L/\nu}$ beyond it. The line on the left is a theorem about $L\to\infty$, that on the right
is classical in the random-energy model, all curves are exact.

Alt: Two panels. Left, the risk falls from one to zero around a vertical dashed line, more steeply for longer
prompts. Right, the participation rises from almost nothing to several tenths, and closes in from above on a dashed
curve that has a corner at the same place.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONG_DECADE
from chapters.needle_in_a_long_prompt.style import SIZE
from chapters.needle_in_a_long_prompt.thresholds import linear_threshold
from chapters.needle_in_a_long_prompt.transition import FrozenWeights, Transition
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence


def numbers(curves: Mapping[int, Transition], hay: FrozenWeights) -> Numbers:
    """The curves; hay alone freezes where the needle appears, and the step steepens."""
    return Numbers(_table(curves), (_freezing_claim(hay), _sharpening_claim(curves)))


def _table(curves: Mapping[int, Transition]) -> Table:
    """By length and relative strength of the hint."""
    frames = [
        pd.DataFrame(
            {
                "decade": decade,
                "ratio": curve.ratios,
                "snr": curve.snrs,
                "risk": curve.risk,
                "participation": curve.participation,
                "frozen": curve.frozen,
            }
        )
        for decade, curve in curves.items()
    ]
    columns = {
        "decade": Column("Decimal logarithm of the prompt length L"),
        "ratio": Column("Strength of the hint over the threshold, ν/(2 ln L)"),
        "snr": Column("Strength of the hint, ν"),
        "risk": Column("Bayes risk, that of the best softmax head", absolute=1e-10),
        "participation": Column("E Σp² of softmax weights at the same scale √ν on a prompt without a needle"),
        "frozen": Column("The same in the random-energy model, for L = ∞"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _freezing_claim(hay: FrozenWeights) -> Claim:
    """FrozenWeights alone freezes where the needle appears."""
    shorter, longer = hay.participation
    shrinks = np.sqrt(hay.decades[1] / hay.decades[0]) - 1.0
    return Claim(
        id="needle-freezing",
        statement=(
            f"Beyond the threshold the hay alone is frozen: at ν = {hay.excess:g}·2 ln L, L = 10^{hay.decades[1]}, its "
            "participation is near 1 - √(2 ln L/ν), the value of the random-energy model."
        ),
        source="heuristic",
        box="hay-freezes",
        measured=float(longer),
        expected=hay.frozen,
        # corrections fall at least like 1/√(ln L): then what the longer hay misses is at most this
        tolerance=float(abs(longer - shorter) / shrinks),
        alternative=Alternative("no freezing: e^ν/L, the law of long prompts, which is at most 1", 1.0),
    )


def _sharpening_claim(curves: Mapping[int, Transition]) -> Claim:
    """The step steepens with L, in units of the threshold."""

    def width(curve):
        return float(np.ptp(np.interp([-0.8, -0.2], -curve.risk, curve.ratios)))

    def linear_width(decade):
        hints = [linear_threshold(10.0**decade, risk) for risk in (0.8, 0.5, 0.2)]
        return float((hints[2] - hints[0]) / hints[1])

    shortest = min(curves)
    return Claim(
        id="needle-sharpening",
        statement=(
            "The passage from blindness to success becomes a step: the width, in ν/(2 ln L), over which the risk falls "
            f"from 0.8 to 0.2, at L = 10^{LONG_DECADE} over the same for the shortest prompt."
        ),
        source="heuristic",
        box="tallest-straw",
        measured=width(curves[LONG_DECADE]) / width(curves[shortest]),
        # the heuristic has (shortest/longest)^½ in decades; half that power is asked for
        expected=(shortest / LONG_DECADE) ** 0.25,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(
            "the same for linear attention, in units of its own threshold",
            linear_width(LONG_DECADE) / linear_width(shortest),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Left the risk, right the participation, against one scale."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, sharex=True)
    decades = sorted(table["decade"].unique().tolist())
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        curve = table[table["decade"] == decade]
        left.plot(curve["ratio"], curve["risk"], color=colour, linewidth=2, label=f"$L=10^{{{decade}}}$")
        right.plot(curve["ratio"], curve["participation"], color=colour, linewidth=2)
    left.axvline(1, color=ink(), linestyle="--", linewidth=1.5)
    label(left, 1, 0.1, r"$\nu=2\,\ln L$", ink(), xytext=(-6, 0), ha="right")
    right.plot(curve["ratio"], curve["frozen"], color=ink(), linestyle="--", linewidth=1.5, label="random-energy model")
    left.set(xlim=(0, table["ratio"].max()), ylim=(0, 1.03), ylabel="Bayes risk, with a needle", title="needle")
    right.set(ylim=(0, 1.03), ylabel=r"participation $\mathbb{E}\,\sum\,p^2$, hay alone", title="hay")
    for panel in (left, right):
        panel.set_xlabel(r"strength of the hint, $\nu/(2\ln L)$")
    left.legend(loc="upper right")
    right.legend(loc="upper left")
    headline(figure, "The needle is found where the hay freezes")
    return figure
