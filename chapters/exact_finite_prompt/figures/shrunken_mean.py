r"""The mean answer of a finite prompt, at lengths no computer can hold.

Across: the size $\tau$ of the query, which is also the answer of the infinite prompt (dashed). Up: the exact mean
answer $\tau(1-P)$ of prompts of $L$ tokens. Every curve follows the dashed line, leaves it, and settles at
the mean of the largest of $L$ standard normals (tick at the right edge), which is about $\sqrt{2\ln L}$. The ceiling
rises like the root of a logarithm, while lengths grow by orders of magnitude.

Alt: Line chart. A dashed diagonal is the infinite prompt. Curves, one for each length, leave it one
after the other and flatten out, each towards a short tick at the right edge. The ticks lie close together although
the lengths differ by many orders of magnitude.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.special import log_ndtr

from chapters.exact_finite_prompt.style import SIZE
from chapters.exact_finite_prompt.theory_comparison import MeanDeviations
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, legend_line, sequence
from lib.finite_prompt import LARGEST_TAU, participation
from lib.statistics import comparison_quantile


@dataclass(frozen=True)
class MeanAnswers:
    """Exact mean answers of prompts of one length to queries of growing size, and to the largest that is guaranteed.

    `ceiling` is the mean of the largest of L normals, `tie` the density at 0 of its distance to the second largest.
    """

    log_length: float
    taus: Float[np.ndarray, " taus"]
    mean: Float[np.ndarray, " taus"]
    farthest: float
    ceiling: float
    tie: float


def exact_answers(decades: list[int]) -> dict[int, MeanAnswers]:
    """`τ (1 - P)` against τ, with its ceiling, by log₁₀ L, for lengths no computer can hold."""
    taus = np.append(np.linspace(0.0, 20.0, 61), LARGEST_TAU)
    answers = {}
    for decade in decades:
        log_length = decade * np.log(10.0)
        mean = taus * (1 - np.asarray(participation(taus, log_length)))
        answers[decade] = MeanAnswers(log_length, taus[:-1], mean[:-1], mean[-1], *largest_score(log_length))
    return answers


def largest_score(log_length: float) -> tuple[float, float]:
    """Mean of the largest of L normals, and the density at zero of its distance to the second, by trapezoids."""
    x, spacing = np.linspace(-12.0, np.sqrt(2 * log_length) + 12.0, 8001, retstep=True)
    others = np.expm1(log_length)
    log_density = -(x**2) / 2 - np.log(2 * np.pi) / 2
    largest = np.exp(log_length + log_density + others * log_ndtr(x))
    tied = np.exp(log_length + 2 * log_density + (others - 1) * log_ndtr(x)) * others
    return float(np.sum(x * largest) * spacing), float(np.sum(tied) * spacing)


def numbers(answers: Mapping[int, MeanAnswers], deviations: MeanDeviations) -> Numbers:
    """The exact mean answers; simulated prompts have the same mean outputs."""
    return Numbers(_table(answers), (_mean_claim(deviations), _ceiling_claim(answers)))


def _table(answers: Mapping[int, MeanAnswers]) -> Table:
    """The mean answer by length and query size."""
    frames = [
        pd.DataFrame({"decade": decade, "tau": these.taus, "mean": these.mean, "ceiling": these.ceiling})
        for decade, these in answers.items()
    ]
    columns = {
        "decade": Column("log₁₀ L"),
        "tau": Column("Size of the query, τ; also the answer of the infinite prompt"),
        "mean": Column("Mean answer τ (1 - P) along the line of Lemma 2.1, in units of τ", absolute=1e-12),
        "ceiling": Column("Mean of the largest of L standard normals, about √(2 ln L)"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _mean_claim(deviations: MeanDeviations) -> Claim:
    comparisons = deviations.shrunk.size
    return Claim(
        id="exact-finite-prompt-mean",
        statement=(
            "The mean output of simulated prompts is linear attention shrunk by 1 - P, with P from the quadrature: the "
            f"worst deviation over {comparisons} coordinates, query sizes and lengths, in standard errors."
        ),
        source="derived here",
        box="mean-output",
        measured=float(np.max(np.abs(deviations.shrunk))),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        alternative=Alternative(
            "no shrinkage: the answer of the infinite prompt", float(np.max(np.abs(deviations.unshrunk)))
        ),
    )


def _ceiling_claim(answers: Mapping[int, MeanAnswers]) -> Claim:
    """The shortest prompt's mean answer at the largest τ, against `E max g - (π²/12) f(0)/τ²`."""
    these = answers[min(answers)]
    # at large τ only near ties cost: E[δ/(1 + e^{τδ})] = π²/12 · f(0)/τ² for the distance δ of the two largest scores
    short = np.pi**2 / 12 * these.tie / LARGEST_TAU**2
    smallest = 1 - np.exp(-these.log_length)  # 1 - P of a query of size 0
    return Claim(
        id="exact-finite-prompt-ceiling",
        statement=(
            f"At L = 10^{min(answers)} and τ = {LARGEST_TAU:g} the mean answer has come to its ceiling, the mean "
            f"{these.ceiling:.4f} of the largest of L standard normals, less (π²/12)f(0)/τ² for near ties."
        ),
        source="derived here",
        box="mean-ceiling",
        measured=these.farthest,
        expected=these.ceiling - short,
        # the next term of the expansion: scores near the largest are √(2 ln L) times denser further down
        tolerance=short * np.sqrt(2 * these.log_length) / LARGEST_TAU,
        alternative=Alternative(
            "a mean answer linear in the query, shrunk at every size as at the smallest", LARGEST_TAU * smallest
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a length, its ceiling as a tick, on the lemma's line."""
    figure, axes = plt.subplots(figsize=SIZE)
    decades = sorted(table["decade"].unique().tolist())
    end = table["tau"].max()
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        curve = table[table["decade"] == decade]
        axes.plot(curve["tau"], curve["mean"], color=colour, linewidth=2)
        ceiling = curve["ceiling"].max()
        axes.plot([0.97 * end, end], [ceiling, ceiling], color=colour, linewidth=3, solid_capstyle="butt")
        label = f"$L=10^{{{decade}}}$" if decade > 1 else "$L=10$"
        axes.annotate(label, (end, ceiling), xytext=(6, 0), textcoords="offset points", va="center", color=ink())
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    words = [r"$L=\infty$: Lemma 2.1", "mean of the largest of $L$ normals"]
    axes.legend([legend_line("--", 1.5), legend_line("-", 3)], words, loc="upper left")
    axes.set(xlim=(0, end), ylim=(0, 1.15 * table["ceiling"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"mean answer, $\tau\,(1-P)$")
    headline(figure, "A finite prompt follows the line, then stops")
    return figure
