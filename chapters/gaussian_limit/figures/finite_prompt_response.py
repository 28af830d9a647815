r"""Answers of finite Gaussian prompts to growing queries.

Across: the size $\tau = \|\Gamma^{1/2}Uz\|$ of the query. Up: the component of the output along the straight line
of Lemma 2.1, in units in which the lemma says $\tau$ (dashed). Each colour is a prompt length $L$: the mean over
independent prompts with two standard errors (bars, mostly smaller than the line) and the standard deviation between
prompts (band). Rings mark $\tau = \sqrt{2\ln L}$, the size of the largest of $L$ standard normals. Up to some way
before its ring a prompt answers like the infinite one; beyond it the answer levels off at its largest token.

Alt: Line chart. A dashed diagonal is the infinite prompt. The curves, one for each prompt length, leave the
diagonal one after the other and flatten, the longest last; rings on the diagonal mark where each should leave, not
far apart although the lengths differ by orders of magnitude.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.gaussian_limit.gaussian_prompts import Responses
from chapters.gaussian_limit.lemma_errors import RATE_TAU, LemmaErrors, RateErrors
from chapters.gaussian_limit.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, legend_line, power_of_ten, sequence
from lib.statistics import comparison_quantile, standard_error


def numbers(responses: Mapping[int, Responses], lemma: LemmaErrors, rate: RateErrors) -> Numbers:
    """The responses by length and query size; the lemma, its rate, and the ceiling of every prompt."""
    return Numbers(_table(responses), (_lemma_claim(lemma), _rate_claim(rate), _ceiling_claim(responses)))


def _table(responses: Mapping[int, Responses]) -> Table:
    """Mean response, its standard error and the spread between prompts, at each length and query size."""
    frames = [
        pd.DataFrame(
            {
                "length": length,
                "prompts": len(these.response),
                "tau": these.taus,
                "response": these.response.mean(axis=0),
                "std_error": standard_error(these.response),
                "spread": these.response.std(axis=0, ddof=1),
                "departure": np.sqrt(2 * np.log(length)),
            }
        )
        for length, these in responses.items()
    ]
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "prompts": Column("Independent prompts averaged", "prompts"),
        "tau": Column("Size of the query, τ = ‖Γ^{1/2} U z‖; also the answer of the infinite prompt, by Lemma 2.1"),
        "response": Column(
            "Mean over prompts of the output's component along VΓUz, in units in which the lemma says τ",
            std_error="std_error",
        ),
        "std_error": Column("Standard error of the mean response", moves_with="response"),
        "spread": Column("Standard deviation of the response between prompts", moves_with="response"),
        "departure": Column("√(2 ln L), where the largest score takes over [heuristic]"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _lemma_claim(lemma: LemmaErrors) -> Claim:
    return Claim(
        id="gaussian-limit-lemma",
        statement=(
            f"On {len(lemma.lemma)} random Gaussians in dimensions {', '.join(map(str, lemma.dims))}, of full rank, "
            "singular and Dirac, attention equals V(m + ΓUz): the largest relative error is rounding."
        ),
        source="[BB26, Lemma 2.1]",
        box="bb26-lemma-2-1",
        measured=float(np.max(lemma.lemma)),
        expected=0.0,
        tolerance=1e-10,
        relation="≤",
        alternative=Alternative("linear attention, V(Γ + mmᵀ)Uz, also where m ≠ 0", float(np.max(lemma.linear))),
    )


def _rate_claim(rate: RateErrors) -> Claim:
    mean, std_error = float(rate.errors.mean()), float(standard_error(rate.errors)) / rate.predicted
    return Claim(
        id="gaussian-limit-rate",
        statement=(
            f"Prompts of {rate.length} tokens miss Lemma 2.1 at τ = {RATE_TAU} by a mean square error of "
            "tr(fluctuation)/L: the ratio of the two is 1."
        ),
        source="derived here",
        box="prop-fluctuation",
        measured=mean / rate.predicted,
        expected=1.0,
        tolerance=comparison_quantile(1) * std_error,
        std_error=std_error,
        alternative=Alternative(
            "the tilted covariance over the number of tokens that matter, e^{τ²} tr(VΓVᵀ)/L", mean / rate.counted
        ),
    )


def _ceiling_claim(responses: Mapping[int, Responses]) -> Claim:
    """A softmax output is a convex combination: no answer beyond the largest token."""
    answers = max(float(np.max(these.response - these.largest_token[:, None])) for these in responses.values())
    line = max(float(np.max(these.taus - these.largest_token[:, None])) for these in responses.values())
    return Claim(
        id="gaussian-limit-ceiling",
        statement=(
            "No prompt answers above its own largest token: over all prompts and queries, the largest excess of a "
            "response over the largest token's component is not positive."
        ),
        source="derived here",
        box="ceiling",
        measured=answers,
        expected=0.0,
        tolerance=1e-9,
        relation="≤",
        alternative=Alternative("finite prompts that follow the straight line of Lemma 2.1", line),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a length over its spread, on the lemma's line."""
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(table["length"].unique().tolist())
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = table[table["length"] == length]
        low, high = curve["response"] - curve["spread"], curve["response"] + curve["spread"]
        axes.fill_between(curve["tau"], low, high, color=colour, alpha=0.16, linewidth=0)
        line = {"color": colour, "linestyle": "-", "linewidth": 2}
        error_bars(axes, curve["tau"], curve["response"], curve["std_error"], **line)
        departure = curve["departure"].max()
        axes.plot(departure, departure, "o", color=colour, markersize=9, fillstyle="none", markeredgewidth=2, zorder=5)
        place = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "color": ink()}
        axes.annotate(f"$L={power_of_ten(length)}$", (curve["tau"].max(), curve["response"].iloc[-1]), **place)
    top = 1.12 * (table["response"] + table["spread"]).max()
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    axes.set(xlim=(0, table["tau"].max()), ylim=(0, max(top, 1.05 * table["departure"].max())))
    axes.set(xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$", ylabel="answer along the line of Lemma 2.1")
    ring = Line2D([], [], color=ink(), marker="o", fillstyle="none", markersize=9, markeredgewidth=2, linestyle="")
    axes.legend([legend_line("--", 1.5), ring], [r"$L=\infty$: Lemma 2.1", r"$\tau=\sqrt{2\,\ln L}$"], loc="upper left")
    headline(figure, "Finite prompts follow the linear limit, then saturate")
    return figure
