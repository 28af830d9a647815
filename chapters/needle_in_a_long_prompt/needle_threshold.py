r"""One scale for finding a needle and for freezing without one.

Left: the Bayes risk, that of the best softmax head, against the strength of the hint in units of $2\ln L$, for
prompts of $L$ tokens. Right: the participation $\mathbb{E}\,\Sigma p^2$ of softmax weights of the same scale
$\tau=\sqrt\nu$ on a prompt *without* a needle, from the chapter on exact finite prompts. Dashed, left: the
threshold $\nu = 2\ln L$. Dashed, right: what the random-energy model gives for $L=\infty$, zero up to the
threshold and $1-\sqrt{2\ln L/\nu}$ beyond it. Both dashed lines are heuristic, all curves are exact.

Alt: Two panels. Left, the risk falls from one to zero around a vertical dashed line, more steeply for longer
prompts. Right, the participation rises from almost nothing to several tenths, and closes in from above on a dashed
curve that has a corner at the same place.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.needle_in_a_long_prompt.parameters import LONGER
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib import single_location as sl
from lib.finite_prompt import participation

SIZE = (8.5, 4.5)


@dataclass(frozen=True)
class Curve:
    """Of one length: Bayes risk with a needle, and participation without one, at scores of the same variance ν."""

    ratios: Float[np.ndarray, " n"]
    snrs: Float[np.ndarray, " n"]
    risk: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Hay:
    """Participation without a needle at one length, at so many times the threshold."""

    decade: int
    excess: float
    participation: float


def trace(decades: list[int], ratios: int) -> dict[int, Curve]:
    """The curve of each length L = 10^decade, at that many hint strengths ν/(2 ln L) from 0.05 to 2.4."""
    return {decade: _curve(decade, np.linspace(0.05, 2.4, ratios)) for decade in decades}


def _curve(decade: int, ratios: Float[np.ndarray, " n"]) -> Curve:
    log_length = decade * np.log(10.0)
    snrs = 2.0 * log_length * ratios
    return Curve(
        ratios=ratios,
        snrs=snrs,
        risk=np.asarray(sl.bayes_risk(sl.Spiked(10.0**decade, snrs))),
        participation=np.asarray(participation(np.sqrt(snrs), log_length)),
    )


def freeze_hay() -> Hay:
    """The longest hay at twice the threshold."""
    log_length, excess = LONGER * np.log(10.0), 2.0
    snr = 2.0 * log_length * excess
    return Hay(LONGER, excess, float(participation(np.sqrt(snr), log_length)))


def numbers(curves: Mapping[int, Curve], hay: Hay) -> Numbers:
    """The curves; hay alone freezes where the needle appears, and the step steepens."""
    return Numbers(_table(curves), (_freezing_claim(hay), _sharpening_claim(curves)))


def _table(curves: Mapping[int, Curve]) -> Table:
    """By length and relative strength of the hint."""
    frames = [
        pd.DataFrame(
            {
                "decade": decade,
                "ratio": curve.ratios,
                "snr": curve.snrs,
                "risk": curve.risk,
                "participation": curve.participation,
            }
        )
        for decade, curve in curves.items()
    ]
    columns = {
        "decade": Column("Decimal logarithm of the prompt length L"),
        "ratio": Column("Strength of the hint over the heuristic threshold, ν/(2 ln L)"),
        "snr": Column("Strength of the hint, ν"),
        "risk": Column("Bayes risk, that of the best softmax head", absolute=1e-10),
        "participation": Column("E Σp² of softmax weights at the same scale √ν on a prompt without a needle"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _freezing_claim(hay: Hay) -> Claim:
    """Hay alone freezes where the needle appears."""
    return Claim(
        id="needle-freezing",
        statement=(
            f"Beyond the threshold the hay alone is frozen: at ν = {hay.excess:g}·2 ln L, L = 10^{hay.decade}, its "
            "participation is near 1 - √(2 ln L/ν), the value of the random-energy model."
        ),
        source="derived here",
        measured=hay.participation,
        expected=1.0 - np.sqrt(1.0 / hay.excess),
        tolerance=0.08,
        alternative=Alternative("no freezing: e^ν/L, the law of long prompts, which is at most 1", 1.0),
    )


def _sharpening_claim(curves: Mapping[int, Curve]) -> Claim:
    """The step steepens with L, in units of the threshold."""
    widths = {}
    for decade in (min(curves), LONGER):
        low, high = np.interp([-0.8, -0.2], -curves[decade].risk, curves[decade].ratios)
        widths[decade] = high - low
    first, last = widths.values()
    return Claim(
        id="needle-sharpening",
        statement=(
            "The passage from blindness to success becomes a step: the width, in ν/(2 ln L), over which the risk falls "
            f"from 0.8 to 0.2, at L = 10^{LONGER} over the same for the shortest prompt."
        ),
        source="derived here",
        measured=float(last / first),
        expected=0.75,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("a passage of one shape at every length", 1.0),
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
    ratio = np.linspace(0, table["ratio"].max(), 200)
    frozen = 1 - 1 / np.sqrt(np.maximum(ratio, 1))
    right.plot(ratio, frozen, color=ink(), linestyle="--", linewidth=1.5, label="random-energy model")
    left.set(xlim=(0, table["ratio"].max()), ylim=(0, 1.03), ylabel="Bayes risk, with a needle", title="needle")
    right.set(ylim=(0, 1.03), ylabel=r"participation $\mathbb{E}\,\Sigma p^2$, hay alone", title="hay")
    for panel in (left, right):
        panel.set_xlabel(r"strength of the hint, $\nu/(2\ln L)$")
    left.legend(loc="upper right")
    right.legend(loc="upper left")
    return figure
