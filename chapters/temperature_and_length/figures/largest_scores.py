r"""Which scores the mean participation comes from, and where a weight cannot grow any more.

The part of $\mathbb{E}\sum_ip_i^2$ that is due to tokens of one score, as a power of $L$, against that score in units
of the largest of a typical prompt, $\sqrt{2\ln L}$. Solid: exact, at one length. Dotted: the limit for long prompts, a
heuristic. Dashed: the same if weights could be larger than one. How many tokens have the score falls, their squared
weight rises, and the product is largest at $2c$. At $c=1/\sqrt3$ the weight of such a token has come to one. Scores of
larger $c$ meet the cap before: beyond it more score brings no more weight, and the maximum stays where the cap begins
(points), at $(1+c^2)/2c$.

Alt: Line chart of three hills, from low left to high right. The lowest is a rounded parabola left of a vertical line at
one. The highest has a kink at its top, a little right of that line, from where a dashed parabola goes on rising.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.integrate import trapezoid
from scipy.special import logsumexp
from scipy.stats import norm

from chapters.temperature_and_length.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence
from lib.finite_prompt import participation

# Sizes c of the scores: with a maximum below the cap, at the cap, and capped; the length, as ln L.
RATIOS = (0.3, 1 / np.sqrt(3.0), 0.8)
LOG_LENGTH = 300.0
# Scores up to here, in units of √(2 ln L), so many of them; of one token, in standard deviations; levels of the dual.
HIGHEST, SCORES, BLOCK = 1.65, 2101, 100
TOKENS = np.linspace(-9.0, 45.0, 2701)
LEVEL_STEP = 0.2
# Of the sum over scores against the integral of the library.
QUADRATURE = 1e-9


@dataclass(frozen=True)
class Parts:
    """At one c: ln of the part of `E Σp²` per unit of score, along scores; and the whole by the library."""

    ratio: float
    scores: Float[np.ndarray, " n"]
    log_part: Float[np.ndarray, " n"]
    whole: float

    @property
    def sum(self) -> float:
        """Of all parts."""
        return float(trapezoid(np.exp(self.log_part), self.scores) * np.sqrt(2 * LOG_LENGTH))

    @property
    def top(self) -> float:
        """The score that contributes most."""
        return float(self.scores[np.argmax(self.log_part)])


def parts() -> list[Parts]:
    """At each of the sizes."""
    return [_parts(ratio) for ratio in RATIOS]


def _parts(ratio: float) -> Parts:
    """`L φ(g) E[(e^{τg} / (e^{τg} + S))²]`, S the sum of the others: `(a/(a+S))² = ∫ t a² e^{-t(a+S)} dt`."""
    largest = np.sqrt(2 * LOG_LENGTH)
    tau, scores = ratio * largest, np.linspace(-0.4, HIGHEST, SCORES)
    # y = ln t, from the inverse of the largest sum to that of the smallest, and beyond
    lowest = -max(tau * largest * HIGHEST, LOG_LENGTH * (1 + ratio**2)) - 40.0
    levels = np.arange(lowest, 100.0 - LOG_LENGTH, LEVEL_STEP)
    mass = norm.pdf(TOKENS) * (TOKENS[1] - TOKENS[0])
    lost = np.array([mass @ -np.expm1(-np.exp(np.minimum(level + tau * TOKENS, 50.0))) for level in levels])
    others = np.expm1(LOG_LENGTH) * np.log1p(-np.minimum(lost, 1 - 1e-16))
    log_weight = np.empty(SCORES)
    for block in np.array_split(np.arange(SCORES), SCORES // BLOCK):
        own = levels + tau * largest * scores[block, None]
        log_weight[block] = logsumexp(2 * own - np.exp(np.minimum(own, 50.0)) + others, axis=1) + np.log(LEVEL_STEP)
    log_part = LOG_LENGTH + norm.logpdf(largest * scores) + log_weight
    return Parts(ratio, scores, log_part, float(participation(tau, LOG_LENGTH)))


def uncapped(ratio: float, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The exponent of L if a weight is `e^{τg}` over the mean of the sum: `1 - x² + 2(2cx - 1 - c²)`."""
    return 1 - scores**2 + 2 * (2 * ratio * scores - 1 - ratio**2)


def limit(ratio: float, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """The same with weights up to 1 [heuristic, for c < 1]."""
    return np.minimum(uncapped(ratio, scores), 1 - scores**2)


def capped(ratio: float) -> float:
    """Where the maximum of the limit is: 2c, or where the cap begins if that is lower."""
    return min(2 * ratio, (1 + ratio**2) / (2 * ratio))


def numbers(found: Sequence[Parts]) -> Numbers:
    """Parts and their limit by size and score; their sum is the participation, and their top is at the cap."""
    return Numbers(_table(found), (_sum_claim(found), _cap_claim(found)))


def _table(found: Sequence[Parts]) -> Table:
    """A row a size and a score."""
    frames = [
        pd.DataFrame(
            {
                "ratio": one.ratio,
                "score": one.scores,
                "exponent": one.log_part / LOG_LENGTH,
                "limit": limit(one.ratio, one.scores),
                "uncapped": uncapped(one.ratio, one.scores),
                "top": capped(one.ratio),
            }
        ).iloc[::15]
        for one in found
    ]
    columns = {
        "ratio": Column("c = τ/√(2 ln L), the size of the scores"),
        "score": Column("Score of a token over τ√(2 ln L)"),
        "exponent": Column("ln of the part of E Σp² per standard deviation of score, over ln L", absolute=1e-9),
        "limit": Column("Its limit for L → ∞ [heuristic]", absolute=1e-12),
        "uncapped": Column("The same if weights were not capped", absolute=1e-12),
        "top": Column("Where the limit is largest"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _sum_claim(found: Sequence[Parts]) -> Claim:
    """The parts make the whole, which they would not without the cap."""
    worst = max(found, key=lambda one: abs(one.sum / one.whole - 1))
    largest = max(found, key=lambda one: one.ratio)
    without = LOG_LENGTH * (2 * largest.ratio**2 - 1) - np.log(largest.whole)
    return Claim(
        id="temperature-parts",
        statement=(
            f"The mean participation is the sum of its parts by score: the largest relative difference over "
            f"{len(found)} sizes, at ln L = {LOG_LENGTH:g}."
        ),
        source="derived here",
        box="rare-prompts",
        measured=abs(worst.sum / worst.whole - 1),
        expected=0.0,
        tolerance=QUADRATURE,
        alternative=Alternative(
            f"weights without a cap, e^{{τ²}}/L, at c = {largest.ratio:g}", float(abs(np.expm1(without)))
        ),
    )


def _cap_claim(found: Sequence[Parts]) -> Claim:
    """Beyond 1/√3 the tokens that matter most are those at the cap."""
    largest = max(found, key=lambda one: one.ratio)
    return Claim(
        id="temperature-cap",
        statement=(
            f"At c = {largest.ratio:g} the mean participation comes from tokens that just own their prompt: the score "
            f"that contributes most at ln L = {LOG_LENGTH:g}, over √(2 ln L), against (1 + c²)/2c."
        ),
        source="heuristic",
        box="rare-prompts",
        measured=largest.top,
        expected=capped(largest.ratio),
        # the kink is rounded over a factor of e in the weight, a few of which are 1/(c ln L)
        tolerance=5 / (2 * largest.ratio * LOG_LENGTH),
        alternative=Alternative("no cap: the maximum at 2c", 2 * largest.ratio),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A hill a size, beside its limit and what it would be without the cap."""
    figure, axes = plt.subplots(figsize=SIZE)
    sizes = sorted(table["ratio"].unique())
    for ratio, colour in zip(sizes, sequence(len(sizes)), strict=True):
        hill = table[table["ratio"] == ratio]
        axes.plot(hill["score"], hill["exponent"], color=colour, linewidth=2.5)
        axes.plot(hill["score"], hill["limit"], color=ink(), linewidth=1.2, linestyle=":")
        top, height = hill["top"].iloc[0], hill["limit"].max()
        beyond = hill[hill["score"] >= top]
        if (beyond["uncapped"] > beyond["limit"] + 1e-3).any() and beyond["uncapped"].max() > height + 1e-3:
            axes.plot(beyond["score"], beyond["uncapped"], color=colour, linewidth=1.5, linestyle="--")
            label(
                axes,
                beyond["score"].iloc[-1],
                beyond["uncapped"].max(),
                "without the cap",
                colour,
                xytext=(-2, 4),
                ha="right",
                va="bottom",
            )
        axes.plot(top, height, "o", color=colour, markersize=7)
        name = r"$c=1/\sqrt{3}$" if abs(ratio * np.sqrt(3) - 1) < 1e-3 else f"$c={ratio:g}$"
        place = {"xytext": (-20, -8), "ha": "center", "va": "top"}
        if ratio == sizes[0]:
            place = {"xytext": (4, -8), "ha": "left", "va": "top"}
        elif ratio == sizes[-1]:
            place = {"xytext": (-14, 5), "ha": "right", "va": "bottom"}
        label(axes, top, height, name, colour, **place)
    axes.axvline(1, color=ink(), linewidth=1)
    label(axes, 1, 0.38, "largest score of\na typical prompt", ink(), ha="right", xytext=(-6, 0), va="top")
    axes.set(xlim=(0, table["score"].max()), ylim=(-1.05, 0.4))
    axes.set(xlabel=r"score of a token, in units of $\sqrt{2\,\ln\,L}$ standard deviations", ylabel="power of $L$")
    headline(figure, r"Above $\mathbf{c=1/\sqrt{3}}$ the mean comes from tokens that just own their prompt")
    return figure
