r"""Between $c=1/\sqrt3$ and 1 the mean participation comes from tokens that just dominate their prompt.

The part of $\mathbb{E}\sum_ip_i^2$ that is due to tokens of one score, as a power of $L$, against this score in units
of $\sqrt{2\ln L}$, the largest score of a typical prompt. The spread of the scores is $c\sqrt{2\ln L}$. Solid: exact,
at one length. Dotted: the limit for long prompts, by a heuristic. Dashed: the limit if weights could exceed one. With a
larger score there are fewer tokens, and each has a larger squared weight; the product is largest at $2c$. At
$c=1/\sqrt3$ the weight of such a token reaches one. For larger $c$ up to 1 the maximum (points) is where the weight
reaches one, at $(1+c^2)/2c$, because a larger score brings no more weight.

Alt: Line chart of three hills, from low left to high right. The lowest is a rounded parabola left of a vertical line at
one. The highest has a kink at its top, a little right of that line, named "a token just dominates its prompt", from
where a dashed parabola continues to rise.
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

from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, legend_with, sequence
from lib.finite_prompt import participation

# Sizes c of the scores: below, at and above the one where the largest weight reaches 1. The length, as ln L.
RATIOS = (0.3, 1 / np.sqrt(3.0), 0.8)
LOG_LENGTH = 300.0
# Largest score, in units of √(2 ln L), number of scores, and scores per batch.
HIGHEST, SCORES, BLOCK = 1.65, 2101, 100
# Nodes for the score of one of the other tokens, in standard deviations, and the distance of the levels y.
TOKENS = np.linspace(-9.0, 45.0, 2701)
LEVEL_STEP = 0.2
# Relative accuracy of the sum over scores.
QUADRATURE = 1e-9


@dataclass(frozen=True)
class Parts:
    """Parts of the mean participation by score, at one c.

    `log_part` is ln of the part of `E Σp²` per standard deviation of score, at each of `scores`; `whole` is `E Σp²` by
    the library.
    """

    ratio: float
    scores: Float[np.ndarray, " n"]
    log_part: Float[np.ndarray, " n"]
    whole: float

    @property
    def sum(self) -> float:
        """The sum of all parts."""
        return float(trapezoid(np.exp(self.log_part), self.scores) * np.sqrt(2 * LOG_LENGTH))

    @property
    def top(self) -> float:
        """The score with the largest part."""
        return float(self.scores[np.argmax(self.log_part)])


def solve_participation_by_score() -> list[Parts]:
    """Return the parts at each of the sizes `RATIOS`."""
    return [_parts(ratio) for ratio in RATIOS]


def _parts(ratio: float) -> Parts:
    """Return `L φ(g) E[(e^{τg} / (e^{τg} + S))²]`, S the sum of the others, by `(a/(a+S))² = ∫ t a² e^{-t(a+S)} dt`."""
    largest = np.sqrt(2 * LOG_LENGTH)
    tau, scores = ratio * largest, np.linspace(-0.4, HIGHEST, SCORES)
    # y = ln t, from below the inverse of the largest sum to above the inverse of the smallest
    lowest = -max(tau * largest * HIGHEST, LOG_LENGTH * (1 + ratio**2)) - 40.0
    levels = np.arange(lowest, 100.0 - LOG_LENGTH, LEVEL_STEP)
    mass = norm.pdf(TOKENS) * (TOKENS[1] - TOKENS[0])
    complement = np.array([mass @ -np.expm1(-np.exp(np.minimum(level + tau * TOKENS, 50.0))) for level in levels])
    others = np.expm1(LOG_LENGTH) * np.log1p(-np.minimum(complement, 1 - 1e-16))
    log_weight = np.empty(SCORES)
    for block in np.array_split(np.arange(SCORES), SCORES // BLOCK):
        own = levels + tau * largest * scores[block, None]
        log_weight[block] = logsumexp(2 * own - np.exp(np.minimum(own, 50.0)) + others, axis=1) + np.log(LEVEL_STEP)
    log_part = LOG_LENGTH + norm.logpdf(largest * scores) + log_weight
    return Parts(ratio, scores, log_part, float(participation(tau, LOG_LENGTH)))


def uncapped(ratio: float, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the exponent of L if a weight is `e^{τg}` over the mean of the sum, `1 - x² + 2(2cx - 1 - c²)`."""
    return 1 - scores**2 + 2 * (2 * ratio * scores - 1 - ratio**2)


def limit(ratio: float, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the same exponent with weights of at most 1, by a heuristic for c < 1."""
    return np.minimum(uncapped(ratio, scores), 1 - scores**2)


def capped(ratio: float) -> float:
    """Return the score at the maximum of the limit: 2c, or the score at which the weight reaches 1 if that is lower."""
    return min(2 * ratio, (1 + ratio**2) / (2 * ratio))


def numbers(parts: Sequence[Parts]) -> Numbers:
    """Return parts and their limits by size and score, and the claims on their sum and on their maximum."""
    return Numbers(_table(parts), (_sum_claim(parts), _cap_claim(parts)))


def _table(parts: Sequence[Parts]) -> Table:
    """Return the table with one row per size and score."""
    frames = [
        pd.DataFrame(
            {
                "ratio": hill.ratio,
                "score": hill.scores,
                "exponent": hill.log_part / LOG_LENGTH,
                "limit": limit(hill.ratio, hill.scores),
                "uncapped": uncapped(hill.ratio, hill.scores),
                "top": capped(hill.ratio),
            }
        ).iloc[::15]
        for hill in parts
    ]
    columns = {
        "ratio": Column("$c = τ/√(2 ln L)$, the size of the scores"),
        "score": Column("Score of a token over $τ√(2 ln L)$"),
        "exponent": Column("ln of the part of $𝔼 Σp²$ per standard deviation of score, over $ln L$", absolute=1e-9),
        "limit": Column("Limit of the exponent for $L → ∞$ [heuristic]", absolute=1e-12),
        "uncapped": Column("The same limit if weights could exceed 1", absolute=1e-12),
        "top": Column("Score at which the limit is largest, over $τ√(2 ln L)$"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _sum_claim(parts: Sequence[Parts]) -> Claim:
    """Claim that the parts add up to the participation, which they would not if weights could exceed 1."""
    worst = max(parts, key=lambda hill: abs(hill.sum / hill.whole - 1))
    largest = max(parts, key=lambda hill: hill.ratio)
    without = LOG_LENGTH * (2 * largest.ratio**2 - 1) - np.log(largest.whole)
    return Claim.equal(
        "temperature-parts",
        (
            f"The parts of the mean participation by score add up to the mean participation, for {len(parts)} sizes of "
            f"the scores at $ln L = {LOG_LENGTH:g}$ (measured: the largest relative deviation)."
        ),
        abs(worst.sum / worst.whole - 1),
        0.0,
        within=QUADRATURE,
        because="accuracy of the two quadratures",
        source="derived here",
        box="rare-prompts",
        alternative=Alternative(
            f"weights that can exceed 1, with the mean $e^{{τ²}}/L$, at $c = {largest.ratio:g}$",
            float(abs(np.expm1(without))),
        ),
    )


def _cap_claim(parts: Sequence[Parts]) -> Claim:
    """Claim that between c = 1/√3 and 1 the largest part is where the weight reaches 1."""
    largest = max(parts, key=lambda hill: hill.ratio)
    return Claim.equal(
        "temperature-cap",
        (
            f"At $c = {largest.ratio:g}$ the mean participation comes from tokens whose score just suffices to "
            f"dominate their prompt: at $ln L = {LOG_LENGTH:g}$ the score with the largest part, over $√(2 ln L)$, is "
            "$(1 + c²)/2c$."
        ),
        largest.top,
        capped(largest.ratio),
        within=5 / (2 * largest.ratio * LOG_LENGTH),
        because="the maximum is rounded over five factors of $e$ in the weight; one is $1/(2c ln L)$ in the score",
        source="heuristic",
        box="rare-prompts",
        alternative=Alternative("weights can exceed 1, and the maximum is at $2c$", 2 * largest.ratio),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per size, its limit, and the limit if weights could exceed 1."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
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
                "if weights could exceed 1",
                colour,
                xytext=(-2, 4),
                ha="right",
                va="bottom",
            )
        axes.plot(top, height, "o", color=colour, markersize=7)
        name = r"$c=1/\sqrt{3}$" if abs(ratio * np.sqrt(3) - 1) < 1e-3 else f"$c={ratio:g}$"
        if ratio == sizes[0]:
            name = f"spread of the scores\n{name}"
        place = {"xytext": (-20, -8), "ha": "center", "va": "top"}
        if ratio == sizes[0]:
            place = {"xytext": (-75, 10), "ha": "right", "va": "bottom"}
        elif ratio == sizes[-1]:
            place = {"xytext": (-14, 5), "ha": "right", "va": "bottom"}
        label(axes, top, height, name, colour, **place)
    axes.axvline(1, color=ink(), linewidth=1)
    axes.axvspan(1, table["score"].max(), color="C1", alpha=0.1, linewidth=0)
    label(
        axes,
        top,
        height,
        "a token just\ndominates\nits prompt",
        colour,
        xytext=(60, 14),
        arrowprops={"arrowstyle": "->", "color": colour},
    )
    label(axes, 1, 0.38, "scores in a\ntypical prompt", ink(), ha="right", xytext=(-8, 0), va="top")
    label(axes, 1.25, -0.4, "only in rare prompts", "C1", xytext=(0, 0), fontsize=12)
    axes.set(xlim=(0, table["score"].max()), ylim=(-1.05, 0.4))
    axes.set(xlabel=r"score of a token, in units of $\sqrt{2\,\ln\,L}$ standard deviations")
    axes.set_ylabel("part of the mean participation due to\ntokens of this score: exponent of $L$")
    lines = {rf"exact, $\ln L={LOG_LENGTH:g}$": legend_line("-", 2.5), "limit of long prompts": legend_line(":", 1.2)}
    legend_with(axes, lines, loc="upper left")
    return figure
