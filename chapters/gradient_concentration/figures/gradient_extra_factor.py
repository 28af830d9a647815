r"""How much more $\nabla_U$ errs than $\nabla_V$.

Ratio of the two mean squared errors, with two standard errors. Left: for queries of the law $\nu$, against length,
by token scale; dash-dotted, a line proportional to $\ln L$. Right: for one query of size $\tau$, tokens of scale 1,
at the lengths drawn on the left. Dashed: prompts of infinite length, a curve that longer prompts follow further. At
each length the ratio has a maximum, higher for longer prompts; beyond it the ratio falls towards $1/u^2$, with
$U=uI$. At the smallest query it is below 1.

Alt: Two panels. Left, ratios rise with the logarithm of the length, for large scales in proportion to it. Right, on
a logarithmic axis, ratios rise with the query along a dashed curve and leave it one after the other, short prompts
first, each with a flat maximum at its own height and a slow fall beyond it.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from chapters.gradient_concentration.gradient_errors import BILINEAR, DIMENSION, PairedErrors
from chapters.gradient_concentration.parameters import MODERATE
from chapters.gradient_concentration.style import SIZE
from chapters.gradient_concentration.theory import long_prompt_law, long_prompt_ratio
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label, legend_line, legend_with, markers, sequence
from lib.statistics import comparison_quantile


def numbers(measured: Mapping[float, PairedErrors], asked: Mapping[float, PairedErrors], gain: float) -> Numbers:
    """Ratios of the two errors, what long prompts make of one query, and that the factor grows with the length."""
    return Numbers(_table(measured, asked, gain), (_query_claim(asked, gain), _growth_claim(measured)))


def _table(measured: Mapping[float, PairedErrors], asked: Mapping[float, PairedErrors], gain: float) -> Table:
    """Ratio of the two errors: by σ and length, and by query size and length."""
    frames = []
    for panel, family in {"scale": measured, "query": asked}.items():
        for number, errors in family.items():
            logs, cov = errors.log_ratio
            base = {"panel": panel, "series": "prompts", "number": number, "length": np.asarray(errors.lengths, float)}
            ratio = {"ratio": np.exp(logs), "std_error": np.exp(logs) * np.sqrt(np.diagonal(cov))}
            frames.append(pd.DataFrame({**base, **ratio}))
    taus = np.linspace(min(asked), max(asked), 60)
    limit = {"number": taus, "ratio": long_prompt_ratio(taus, gain)}
    frames.append(pd.DataFrame({"panel": "query", "series": "limit", **limit}))
    columns = {
        "panel": Column("`scale`: queries N(0, I), tokens of scale σ; `query`: one query, tokens of scale 1", "name"),
        "series": Column("`prompts`: simulated; `limit`: prompts of infinite length", "name"),
        "number": Column("σ in the first panel, τ in the second"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "ratio": Column("Mean squared error of ∇_U over that of ∇_V", std_error="std_error"),
        "std_error": Column("Standard error of the simulated ratio", moves_with="ratio"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _query_claim(asked: Mapping[float, PairedErrors], gain: float) -> Claim:
    """L times the error of ∇_U at the longest length over its limit, worst over moderate queries."""
    curves = {tau: errors.curve(BILINEAR) for tau, errors in asked.items() if tau <= MODERATE}

    def worst(law):
        return max(float(curve.deviations(law(tau) / curve.lengths)[-1]) for tau, curve in curves.items())

    return Claim(
        id="gradient-concentration-query",
        statement=(
            f"At {len(curves)} queries of size τ ≤ {MODERATE}, L times the mean squared error of ∇_U is that of long "
            "prompts, ‖z‖² e^{τ²} ((τ² + d)² + 2τ² + d): the worst deviation at the longest length, in standard errors."
        ),
        source="derived here",
        box="gradient-fluctuation",
        measured=worst(lambda tau: long_prompt_law(np.asarray(tau), gain)),
        expected=0.0,
        tolerance=comparison_quantile(len(curves)),
        relation="≤",
        alternative=Alternative(
            "all tokens weighed the same, ‖z‖² (d² + d)",
            worst(lambda tau: (tau / gain) ** 2 * (DIMENSION**2 + DIMENSION)),
        ),
    )


def _growth_claim(measured: Mapping[float, PairedErrors]) -> Claim:
    """At the largest σ the extra factor grows with the length, by more than chance."""
    sigma = max(measured)
    logs, cov = measured[sigma].log_ratio
    growth = np.exp(logs[-1] - logs[0])
    std_error = growth * np.sqrt(cov[0, 0] + cov[-1, -1] - 2 * cov[0, -1])
    lengths = measured[sigma].lengths
    return Claim(
        id="gradient-concentration-extra",
        statement=(
            f"At σ = {sigma:g} the error of ∇_U, over that of ∇_V, grows from L = {lengths[0]} to L = {lengths[-1]}: "
            "by how much, beyond what chance would do to a constant ratio."
        ),
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
        measured=growth,
        expected=1 + comparison_quantile(1) * std_error,
        tolerance=0.0,
        relation="≥",
        std_error=std_error,
        alternative=Alternative("both errors followed one law, up to a constant", 1.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Ratios against length by scale, and against the size of one query by length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    scale, query = (table[table["panel"] == panel] for panel in ("scale", "query"))
    sigmas, lengths = sorted(scale["number"].unique()), sorted(scale["length"].unique())
    for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), markers(len(sigmas)), strict=True):
        mine = scale[scale["number"] == sigma]
        look = {"color": colour, "marker": marker, "linestyle": "-", "linewidth": 1, "label": rf"$\sigma={sigma:g}$"}
        error_bars(left, mine["length"], mine["ratio"], mine["std_error"], **look)
    top = scale[scale["number"] == sigmas[-1]].iloc[-1]
    left.axline((1, 0), (top["length"], 1.25 * top["ratio"]), color=ink(), linestyle="-.", linewidth=1.2)
    left.set(xscale="log", xlim=(lengths[0] / 2, 2 * lengths[-1]), ylim=(0, 1.4 * scale["ratio"].max()))
    left.set(xlabel="prompt length $L$", ylabel=r"error of $\nabla_U$ over error of $\nabla_V$")
    left.set_title("queries of the law, by the tokens' scale")
    legend_with(left, {r"$\propto\ln L$": legend_line("-.", 1.2)}, loc="upper left")
    for length, colour, marker in zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True):
        mine = query[query["length"] == length]
        look = {"color": colour, "marker": marker, "linestyle": "-", "linewidth": 1}
        error_bars(right, mine["number"], mine["ratio"], mine["std_error"], **look)
        label(right, mine["number"].iloc[-1], mine["ratio"].iloc[-1], f"$L={length:g}$", colour, xytext=(10, 0))
    limit, ratio = query[query["series"] == "limit"], query[query["series"] == "prompts"]["ratio"]
    right.plot(limit["number"], limit["ratio"], color=ink(), linestyle="--", linewidth=1.6, label=r"$L=\infty$")
    right.set(yscale="log", ylim=(ratio.min() / 1.5, 2 * ratio.max()), xlabel=r"size of the query, $\tau$")
    right.set_title(r"one query, tokens of scale 1")
    right.legend(loc="lower right")
    for panel in (left, right):
        panel.xaxis.set_minor_locator(NullLocator())
    headline(
        figure,
        r"On average $\nabla_\mathbf{U}$ errs more than $\nabla_\mathbf{V}$, more so on longer prompts",
    )
    return figure
