r"""The mean answer of a finite prompt, at lengths no computer can hold.

Across: the size $\tau$ of the query, which is also the answer of the infinite prompt (dashed). Up: the exact mean
answer $\tau(1-P)$ of prompts of $L$ tokens. Every curve follows the dashed line, leaves it, and settles near
$\sqrt{2\ln L}$ (tick at the right edge), about the largest of $L$ standard normals. The ceiling rises like the root
of a logarithm: ever so slowly, while lengths grow by orders of magnitude.

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

from chapters.exact_finite_prompt.against_theory import MeanDeviations
from chapters.exact_finite_prompt.marks import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, legend_line, sequence
from lib.batching import tabulate
from lib.finite_prompt import participation
from lib.statistics import comparison_quantile


@dataclass(frozen=True)
class MeanAnswers:
    """Exact mean answers of prompts of one length to queries of growing size, and about the largest possible one."""

    taus: Float[np.ndarray, " taus"]
    mean: Float[np.ndarray, " taus"]
    ceiling: float


def exact_answers(decades: list[int]) -> dict[int, MeanAnswers]:
    """`τ (1 - P)` against τ, with the ceiling √(2 ln L), by log₁₀ L, for lengths no computer can hold."""
    taus = np.linspace(0.0, 20.0, 61)
    answers = {}
    for decade in decades:
        log_length = decade * np.log(10.0)
        shrinkage = 1 - tabulate(participation, taus, log_length)
        answers[decade] = MeanAnswers(taus, taus * shrinkage, np.sqrt(2 * log_length))
    return answers


def numbers(answers: Mapping[int, MeanAnswers], deviations: MeanDeviations) -> Numbers:
    """The exact mean answers; simulated prompts have the same mean outputs."""
    return Numbers(_table(answers), (_mean_claim(deviations),))


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
        "ceiling": Column("√(2 ln L), about the largest of L standard normals"),
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
    words = [r"$L=\infty$: Lemma 2.1", r"ceiling $\sqrt{2\,\ln L}$"]
    axes.legend([legend_line("--", 1.5), legend_line("-", 3)], words, loc="upper left")
    axes.set(xlim=(0, end), ylim=(0, 1.15 * table["ceiling"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"mean answer, $\tau\,(1-P)$")
    return figure
