r"""Finite Gaussian prompts follow the linear limit for small queries, and then saturate at their largest token.

The vertical axis is the component of the output along the straight line of Lemma 2.1, in the unit in which the infinite
prompt has the output $\tau$. Curves are means over independent prompts, with two standard errors (bars, long where
prompts are few). A curve leaves the line gradually, well before its ring, and levels off at the largest token beyond
it.

Alt: Line chart. A dashed diagonal is the infinite prompt. The curves, one for each prompt length, leave the diagonal
one after the other and flatten, the longest last; rings on the curves, one for each length, are where they bend, and
not far apart although the lengths differ by orders of magnitude.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from chapters.gaussian_limit.gaussian_prompts import Responses
from chapters.gaussian_limit.lemma_errors import RATE_TAU, LemmaErrors, RateErrors
from chapters.style import coloured_rows
from chapters.wording import listing
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, power_of_ten
from lib.statistics import standard_error


def numbers(responses: Mapping[int, Responses], lemma: LemmaErrors, rate: RateErrors) -> Numbers:
    """Return responses by length and query size, and the claims on the lemma, the rate and the ceiling."""
    groups = [
        {
            "length": length,
            "prompts": len(sample.response),
            "tau": sample.taus,
            "response": sample.response.mean(axis=0),
            "std_error": standard_error(sample.response),
            "spread": sample.response.std(axis=0, ddof=1),
            "departure": np.sqrt(2 * np.log(length)),
        }
        for length, sample in responses.items()
    ]
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "prompts": Column("Number of independent prompts", "prompts"),
        "tau": Column("Size of the query, $τ = ‖Γ^{1/2} U z‖$; also the output of the infinite prompt, by Lemma 2.1"),
        "response": Estimate(
            "Mean over prompts of the component of the output along $VΓUz$, in the unit in which Lemma 2.1 gives $τ$",
            std_error="std_error",
        ),
        "spread": Column("Standard deviation of the response between prompts", moves_with="response"),
        "departure": Column("$√(2 ln L)$, the size of the largest of $L$ standard normals, to leading order"),
    }
    return Numbers(Table.of(groups, columns), _claims(responses, lemma, rate))


def _claims(responses: Mapping[int, Responses], lemma: LemmaErrors, rate: RateErrors) -> Claims:
    claim = Claims("gaussian-limit", source="derived here")
    claim.at_most(
        "lemma",
        f"On {len(lemma.lemma)} random Gaussians in dimensions {listing(map(str, lemma.dims))}, of full rank, singular "
        "and Dirac, the output of attention is $V(m + ΓUz)$ (measured: the largest relative error).",
        np.max(lemma.lemma),
        0,
        within=1e-10,
        because="rounding in float64, with a margin for ill-conditioned random matrices",
        rejects=("the output is that of linear attention, $V(Γ + mmᵀ)Uz$, also where $m ≠ 0$", np.max(lemma.linear)),
        source="[BB26, Lemma 2.1]",
        box="bb26-lemma-2-1",
    )
    claim.equal(
        "rate",
        f"Prompts of {rate.length:,} tokens have a mean squared error of tr(fluctuation)$/L$ around Lemma 2.1 "
        f"at $τ = {RATE_TAU}$ (measured: the ratio of the two).",
        rate.errors.mean() / rate.predicted,
        1,
        rejects=(
            "the error is the tilted covariance divided by the effective number of tokens, $e^{τ²} tr(VΓVᵀ)/L$",
            rate.errors.mean() / rate.counted,
        ),
        std_error=standard_error(rate.errors) / rate.predicted,
        box="prop-fluctuation",
    )
    # an output is a convex combination of the values of the tokens
    claim.at_most(
        "ceiling",
        "No output exceeds the largest token of its prompt, along the line of the lemma (measured: the largest "
        "excess over all prompts and queries).",
        max(np.max(sample.response - sample.largest_token[:, None]) for sample in responses.values()),
        0,
        within=1e-9,
        because="rounding of a weighted mean in float64, with a margin",
        rejects=(
            "finite prompts follow the straight line of Lemma 2.1 at every query",
            max(np.max(sample.taus - sample.largest_token[:, None]) for sample in responses.values()),
        ),
        box="ceiling",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per length with its spread, and the line of the lemma."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.8))
    for length, curve, colour in coloured_rows(table, "length"):
        low, high = curve["response"] - curve["spread"], curve["response"] + curve["spread"]
        axes.fill_between(curve["tau"], low, high, color=colour, alpha=0.16, linewidth=0)
        error_bars(axes, curve["tau"], curve["response"], curve["std_error"], color=colour, linestyle="-", linewidth=2)
        largest = curve["departure"].max()
        height = np.interp(largest, curve["tau"], curve["response"])
        axes.plot(largest, height, "o", color=colour, markersize=9, fillstyle="none", markeredgewidth=2, zorder=5)
        name = f"$L={power_of_ten(length) if length > 10 else length}$"
        label(axes, curve["tau"].max(), curve["response"].iloc[-1], name, ink(), xytext=(8, 0))
    top = 1.25 * (table["response"] + table["spread"]).max()
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    axes.set(xlim=(0, table["tau"].max()), ylim=(0, top))
    label(axes, 0.9 * top, 0.9 * top, "infinite prompt:\nlinear (Lemma 2.1)", ink(), xytext=(-10, 4), ha="right")
    label(axes, table["tau"].max(), 0.92 * top, "levels off at\nthe largest token", ink(), xytext=(0, 0), ha="right")
    axes.set(xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$", ylabel="output along the line of Lemma 2.1")
    ring = Line2D([], [], color=ink(), marker="o", fillstyle="none", markersize=9, markeredgewidth=2, linestyle="")
    names = [r"$\tau=\sqrt{2\,\ln L}$, about the largest score", "spread of prompts, ± 1 sd"]
    axes.legend([ring, Patch(color=ink(), alpha=0.16)], names, loc="lower right")
    return figure
